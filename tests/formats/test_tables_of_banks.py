"""Tables as banks and apps export them: lines above, odd headers, amounts and dates."""

import pytest

from tests.formats.owner import Owner, counts, write

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
    assert "mixed stays text: it has the currencies" in report and "primary-text note" not in report
    assert "-4" in owner.reader().ok("aggregate", "t", "sum", "paid").stdout
    assert {row["data"]["paid"] for row in owner.rows("t")} == {"-$1.50", "($2.50)"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("z.bib", "% x\n@article{a1,\n title = {Tide},\n}\n"),
        ("z.ris", "TY  - JOUR\nTI  - Tide\nER  -\n"),
        ("z.txt", "TY  - JOUR\nTI  - Tide\nER  -\n"),
    ],
)
def test_libraries_of_papers_are_refused_by_name(owner: Owner, name: str, content: str) -> None:
    report = owner.bring(write(owner.home, {name: content}) / name, code=1)
    assert "This looks like a" in report and "Export the library as CSV" in report
