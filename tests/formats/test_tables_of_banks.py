"""Tables as banks and apps export them: lines above, odd headers, amounts and dates."""

import subprocess
import sys

import pytest

from tests.formats.owner import Owner, counts, write
from tests.helpers.stdio import ROOT, environment

CHASE = """\
Details,Posting Date,Description,Amount,Check or Slip #
DEBIT,03/13/2026,"HARBOR CAFE",-12.34,,
CREDIT,03/02/2026,"PIER PAYROLL",2000.00,,
CHECK,02/27/2026,"CHECK 101",-75.00,101,
"""
LLOYDS = """\
Transaction Date,Transaction Description,Debit Amount,Credit Amount,
13/03/2026,HARBOUR CAFE,12.34,
02/03/2026,PIER WAGES,,2000.00
"""
ING = """\
Umsatzanzeige;Datei erstellt am: 13.03.2026 10:00

IBAN;DE12 5001 0517 1234 5678 90
Kunde;Ada K\u00f6nig
Saldo;1.234,56;EUR

Buchung;Auftraggeber/Empf\u00e4nger;Verwendungszweck;Betrag;W\u00e4hrung
13.03.2026;Hafencaf\u00e9;Fischbr\u00f6tchen mit Kaffee;-12,34;EUR
02.03.2026;Leuchtturm GmbH;Gehalt M\u00e4rz;2.000,00;EUR
27.02.2026;Werft;Miete f\u00fcr den Liegeplatz;-1.075,50;EUR
"""
VENMO = """\
Account Statement - (@Ada),,,,,
Account Activity,,,,,
,ID,Datetime,Note,From,Amount (total)
,1,2026-03-01T10:00:00,Ferry tickets,Ada,- $12.00
,2,2026-03-02T10:00:00,Rope,Bo,+ $1000.50
"""
FORMS = {
    "chase.csv": (CHASE, "Amount", 3),
    "lloyds.csv": (LLOYDS, "Debit Amount", 2),
    "ing.csv": (ING, "Betrag", 3),
    "venmo.csv": (VENMO, "Amount (total)", 2),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_header_is_the_row_of_names_that_the_rows_fit(owner: Owner, name: str) -> None:
    content, column, number = FORMS[name]
    report = owner.bring(write(owner.home, {name: content}) / name)
    assert counts(report)["new"] == number and "no header" not in report
    assert any(column in row["data"] for row in owner.rows(name.removesuffix(".csv")))
    owner.again(owner.home / name)


def test_a_booking_has_the_payee_as_its_title_and_a_text(owner: Owner) -> None:
    report = owner.bring(write(owner.home, {"ing.csv": ING}) / "ing.csv")
    assert "primary-text Verwendungszweck" in report and "primary-title Auftraggeber" in report
    total = owner.reader().ok("aggregate", "ing", "sum", "Betrag").stdout
    assert "912.16" in total


def test_amounts_with_a_currency_are_numbers_unless_there_are_two(owner: Owner) -> None:
    rows = ["1,-$1.50,\u20ac 5.00,same words here", "2,($2.50),$7.25,same words here"]
    table = "\n".join(["id,paid,mixed,note", *rows, ""])
    report = owner.bring(write(owner.home, {"t.csv": table}) / "t.csv")
    assert (
        "mixed stays text, because it has several currencies" in report
        and "primary-text note" not in report
    )
    assert "-4" in owner.reader().ok("aggregate", "t", "sum", "paid").stdout
    assert {row["data"]["paid"] for row in owner.rows("t")} == {"-$1.50", "($2.50)"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("z.enw", "%0 Journal Article\n%T Tide\n"),
        ("z.nbib", "PMID- 123\nOWN - NLM\n"),
        ("z.txt", "FN Clarivate Analytics Web of Science\nVR 1.0\n"),
    ],
)
def test_libraries_of_papers_are_refused_by_name(owner: Owner, name: str, content: str) -> None:
    report = owner.bring(write(owner.home, {name: content}) / name, code=1)
    assert "It looks like a" in report and "Export the library as BibTeX or RIS" in report


def ledger(*last: str) -> str:
    """A table of 1,500 rows that decide nothing, before others."""
    rows = [f"{number % 12 + 1}/{number % 9 + 1}/2026,5" for number in range(1_500)]
    return "\n".join(["Day,Amount", *rows, *last, ""])


def test_the_order_of_day_and_month_is_decided_by_the_whole_column(owner: Owner) -> None:
    report = owner.bring(write(owner.home, {"a.csv": ledger("12/31/2026,5")}) / "a.csv")
    assert "event-time Day" in report and "stays text" not in report
    shown = owner.reader().ok("query", "a", "--filter", "Day>=2026-12-31").stdout
    assert "records=1 " in shown, shown
    owner.again(owner.home / "a.csv")


@pytest.mark.parametrize("through", ["file", "pipe"])
def test_a_column_that_mixes_both_orders_stays_text(owner: Owner, through: str) -> None:
    content = ledger("31/3/2026,5", "3/31/2026,5")
    if through == "pipe":
        command = [sys.executable, "-m", "service", "import", "-", "--format", "csv"]
        report = subprocess.run(
            [*command, "--stream", "a", "--connection", "c"],
            input=content.encode(),
            capture_output=True,
            env=environment(**owner.shell.environ),
            cwd=ROOT,
        ).stderr.decode()
    else:
        report = owner.bring(write(owner.home, {"a.csv": content}) / "a.csv")
    doubt = "'31/3/2026' begins with the day, '3/31/2026' with the month"
    assert f"Day stays text, because {doubt}" in report
    assert "do not match its type" not in report


def test_a_column_with_two_currencies_in_all_its_rows_is_no_number(owner: Owner) -> None:
    content = ledger("3/3/2026,$5.00", "3/3/2026,€5.00")
    report = owner.bring(write(owner.home, {"a.csv": content}) / "a.csv")
    assert "Amount stays text, because it has several currencies: $, €" in report


def test_a_fraction_after_many_whole_numbers_makes_a_column_decimal(owner: Owner) -> None:
    report = owner.bring(write(owner.home, {"a.csv": ledger("3/31/2026,2.50")}) / "a.csv")
    assert "do not match its type" not in report
    assert "7502.5" in owner.reader().ok("aggregate", "a", "sum", "Amount").stdout
