"""Statements of banks in MT940 and CAMT: amounts, days, people and purposes."""

from tests.formats.owner import Owner, counts, write

MT940 = """\
{1:F01BANKDEFFXXXX0000000000}{2:I940BANKDEFFXXXXN}{4:
:20:STARTUMS
:25:50010517/1234567890
:28C:1/1
:60F:C260301EUR1000,00
:61:2603130313D12,34NMSCNONREF//0313-77
:86:166?00SEPA-UEBERWEISUNG?109310?20EREF+RG-0042 SVWZ+Zwei Kaff?21ee am Hafen?22danke?30COB
ADEFFXXX?31DE02120300000000202051?32Harbour Caf\u00e9?33 GmbH
:61:2512310102CR1500,NTRFRente//R1
Zusatz
:86:/TRTP/SEPA OVERBOEKING/IBAN/NL02ABNA0123456789/BIC/ABNANL2A/NAME/J Jan
sen/REMI/Huur maart/EREF/NOTPROVIDED
:61:260314RD5,00NRTI
:61:26031D9,99
:86:broken
:62F:C260314EUR2487,66
-}
:20:STARTUMS
:25:NL02ABNA0123456789
:60F:C260301USD0,
:61:260315C0,05NINT
:86:Rente über 1 Zeile
:61:260315C0,05NINT
:86:Rente über 1 Zeile
-
"""


def test_payments_of_mt940_have_their_day_their_sign_and_their_people(owner: Owner) -> None:
    path = write(owner.home / "export", {"umsatz.sta": MT940}) / "umsatz.sta"
    report = owner.bring(path, code=3)
    assert "umsatz.sta is read as mt940" in report and counts(report)["new"] == 5, "equal ones, too"
    assert "The payment :61:26031D9,99 is not valid MT940." in report
    rows = {str(row["data"]["amount"]): row["data"] for row in owner.rows("transactions")}
    assert rows["-12.34"] == {
        "account": "50010517/1234567890",
        "date": "2026-03-13",
        "value_date": "2026-03-13",
        "amount": "-12.34",
        "currency": "EUR",
        "kind": "NMSC",
        "bank_reference": "0313-77",
        "booking_text": "SEPA-UEBERWEISUNG",
        "memo": "EREF+RG-0042 SVWZ+Zwei Kaffee am Hafen danke",
        "payee": "Harbour Café GmbH",
        "payee_bank": "COBADEFFXXX",
        "payee_account": "DE02120300000000202051",
        "other": ["10: 9310"],
    }
    rent = rows["1500"]
    assert (rent["date"], rent["value_date"]) == ("2026-01-02", "2025-12-31")
    assert rent["payee"] == "J Jansen" and rent["payee_account"] == "NL02ABNA0123456789"
    assert rent["reference"] == "Rente" and rent["memo"].startswith("Zusatz\n/TRTP/SEPA")
    assert rows["5.00"]["kind"] == "NRTI", "a debit that is reversed is a credit"
    assert rows["0.05"]["currency"] == "USD" and rows["0.05"]["memo"] == "Rente über 1 Zeile"
    total = owner.reader().ok("aggregate", "transactions", "sum", "--field", "amount").stdout
    assert "1492.76" in total, total
    owner.again(path, code=3)


CAMT = """\
<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.%s"><BkToCstmrStmt>
<GrpHdr><MsgId>1</MsgId></GrpHdr><Stmt><Id>S1</Id>
<Acct><Id><IBAN>DE02500105170137075030</IBAN></Id><Ccy>EUR</Ccy></Acct>
<Bal><Amt Ccy="EUR">1000.00</Amt></Bal>
<Ntry><Amt Ccy="EUR">12.340</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts>
 <BookgDt><Dt>2026-03-13</Dt></BookgDt><ValDt><Dt>2026-03-14</Dt></ValDt>
 <AcctSvcrRef>77</AcctSvcrRef><BkTxCd><Prtry><Cd>NTRF+116</Cd></Prtry></BkTxCd>
 <NtryDtls><TxDtls><Refs><EndToEndId>RG-0042</EndToEndId></Refs>
  <RltdPties><Dbtr><Nm>Ada</Nm></Dbtr><Cdtr>%sHarbour Café%s</Cdtr>
   <CdtrAcct><Id><IBAN>NL02ABNA0123456789</IBAN></Id></CdtrAcct></RltdPties>
  <RmtInf><Ustrd>Zwei Kaffee</Ustrd><Ustrd>am Hafen &amp; Mole</Ustrd></RmtInf></TxDtls></NtryDtls>
</Ntry>
<Ntry><Amt Ccy="EUR">30.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>PDNG</Cd></Sts>
 <BookgDt><DtTm>2026-03-15T10:00:00</DtTm></BookgDt>
 <NtryDtls><TxDtls><AmtDtls><TxAmt><Amt Ccy="EUR">10.00</Amt></TxAmt></AmtDtls>
  <RltdPties><Dbtr><Nm>Noor</Nm></Dbtr></RltdPties></TxDtls>
 <TxDtls><Amt Ccy="EUR">20.00</Amt><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs>
  <RltdPties><Dbtr><Nm>Jörg</Nm></Dbtr></RltdPties></TxDtls></NtryDtls>
</Ntry>
<Ntry><CdtDbtInd>CRDT</CdtDbtInd></Ntry>
</Stmt></BkToCstmrStmt></Document>
"""


def test_entries_of_camt_are_payments_also_those_of_a_collective_booking(owner: Owner) -> None:
    for version, begin, end in (("02", "<Nm>", "</Nm>"), ("08", "<Pty><Nm>", "</Nm></Pty>")):
        path = write(owner.home / version, {"Auszug.xml": CAMT % (version, begin, end)})
        report = owner.bring(path / "Auszug.xml", code=3)
        assert "is read as camt" in report and "This entry has no amount." in report
    assert counts(report)["unchanged"] == 3, "both versions of the form have the same payments"
    rows = {str(row["data"]["amount"]): row["data"] for row in owner.rows("transactions")}
    assert rows.keys() == {"-12.340", "10.00", "20.00"}
    assert rows["-12.340"] == {
        "account": "DE02500105170137075030",
        "date": "2026-03-13",
        "value_date": "2026-03-14",
        "amount": "-12.340",
        "currency": "EUR",
        "status": "BOOK",
        "kind": "NTRF+116",
        "bank_reference": "77",
        "payee": "Harbour Café",
        "payee_account": "NL02ABNA0123456789",
        "memo": "Zwei Kaffee\nam Hafen & Mole",
        "reference": "RG-0042",
    }
    assert rows["20.00"]["payee"] == "Jörg" and "reference" not in rows["20.00"]
    assert rows["10.00"]["date"] == "2026-03-15T10:00:00" and rows["10.00"]["status"] == "PDNG"
