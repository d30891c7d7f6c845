"""Messages of Outlook (`.msg`): texts, people, times, files, and messages in messages."""

from struct import pack
from typing import Any

import pytest

from service.importing.readers.outlook import unpacked_rtf
from tests.formats.compound import compound
from tests.formats.owner import Owner, counts, write

#: 2026-03-03T09:15:00Z in units of 100 nanoseconds since 1601.
TICKS = (1_772_529_300 + 11_644_473_600) * 10**7
#: The example of the specification of compressed RTF.
PACKED = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c09002062"
    "7705b06c647d0a800fa0"
)


def properties(size: int, **fixed: int) -> dict[str, bytes]:
    """The stream of properties with a fixed size, by their numbers and types in hex."""
    entries = (pack("<IIQ", int(tag[1:], 16), 6, value) for tag, value in fixed.items())
    return {"__properties_version1.0": bytes(size) + b"".join(entries)}


def texts(**values: str) -> dict[str, bytes]:
    return {f"__substg1.0_{n[1:]}001F": value.encode("utf-16-le") for n, value in values.items()}


def person(kind: int, **values: str) -> dict[str, bytes]:
    return {**properties(8, _0C150003=kind), **texts(**values)}


INNER = {
    **properties(24, _00390040=TICKS),
    **texts(_0037="Alte Frage", _1000="Wo ist die Boje?", _0C1A="Noor", _0C1F="noor@x.org"),
}
FILE = {
    **properties(8),
    **texts(_3707="Größe.csv", _370E="text/csv"),
    "__substg1.0_37010102": "Länge;12\n".encode() * 600,
}
SENT: dict[str, Any] = {
    **properties(32, _00390040=TICKS),
    **texts(
        _001A="IPM.Note",
        _0037="Öl für die Lampe 🌊",
        _1000="Bitte bestellen: 3 Kanister.\r\n",
        _0C1A="König, Ada",
        _0C1F="/O=HAFEN/OU=AMT/CN=ADA",
        _5D01="ada@x.org",
        _1035="<m1@x.org>",
        _1042="<m0@x.org>",
    ),
    "__recip_version1.0_#00000000": person(1, _3001="Noor", _39FE="noor@x.org"),
    "__recip_version1.0_#00000001": person(1, _3001="Lotsen, Büro", _3003="/O=HAFEN/CN=B"),
    "__recip_version1.0_#00000002": person(2, _3001="zoe@x.org", _3003="zoe@x.org"),
    "__recip_version1.0_#00000003": person(3, _3001="Secret", _39FE="secret@x.org"),
    "__attach_version1.0_#00000000": FILE,
    "__attach_version1.0_#00000001": {**properties(8), "__substg1.0_3701000D": INNER},
}
HEADERS = """\
Received: from x
From: =?utf-8?q?J=C3=B6rg?= <joerg@x.org>
To: ada@x.org
Date: Tue, 3 Mar 2026 10:15:00 +0100
Message-ID: <m2@x.org>
References: <m0@x.org> <m1@x.org>
"""
RECEIVED = {
    **properties(32, _3FDE0003=28591, _3FFD0003=1252),
    **texts(_007D=HEADERS),
    "__substg1.0_0037001E": "Grüße".encode("cp1252"),
    "__substg1.0_10130102": "<p>Die F\xe4hre <b>wartet</b></p>".encode("latin-1"),
}
DRAFT = {**properties(32), **texts(_0037="Entwurf"), "__substg1.0_10090102": PACKED}


def test_messages_of_outlook_are_mail_with_people_times_and_files(owner: Owner) -> None:
    files = {"sent.msg": SENT, "received.msg": RECEIVED, "draft.msg": DRAFT}
    folder = write(owner.home / "Post", {name: compound(file) for name, file in files.items()})
    report = owner.bring(folder)
    assert "is read as msg" in report and counts(report)["new"] == 5
    rows = {row["data"]["subject"]: row["data"] for row in owner.rows("messages")}
    assert rows["Öl für die Lampe 🌊"] == {
        "id": "m1@x.org",
        "thread_id": "m0@x.org",
        "subject": "Öl für die Lampe 🌊",
        "from": '"König, Ada" <ada@x.org>',
        "to": ["Noor <noor@x.org>", "Lotsen, Büro"],
        "cc": ["zoe@x.org"],
        "sent_at": "2026-03-03T09:15:00Z",
        "folder": "Post",
        "labels": [],
        "body": "Bitte bestellen: 3 Kanister.\n",
    }
    received = rows["Grüße"]
    assert received["from"] == "Jörg <joerg@x.org>" and received["body"] == "Die Fähre wartet"
    assert received["thread_id"] == "m0@x.org" and received["sent_at"] == "2026-03-03T09:15:00Z"
    assert rows["Entwurf"]["body"].strip() == "hello world"
    assert not rows["Entwurf"]["sent_at"] and not rows["Entwurf"]["from"]
    attached = {row["data"]["filename"]: row["data"] for row in owner.rows("attachments")}
    assert attached["Größe.csv"]["text"].startswith("Länge;12\n")
    assert "From: Noor <noor@x.org>" in attached["Alte Frage"]["text"]
    assert attached["Alte Frage"]["text"].endswith("Wo ist die Boje?")
    owner.again(folder)


def test_compressed_rtf_is_that_of_its_specification() -> None:
    assert unpacked_rtf(PACKED) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    assert unpacked_rtf(PACKED[:8] + b"MELA" + bytes(4) + b"{\\rtf1}") == b"{\\rtf1}"


@pytest.mark.parametrize("size", [100, 600, 1_500])
def test_a_file_that_is_cut_is_refused_alone(owner: Owner, size: int) -> None:
    folder = write(owner.home / "Post", {"a.msg": compound(SENT)[:size], "b.msg": compound(SENT)})
    report = owner.bring(folder, code=3)
    assert "not a complete Outlook message" in report and counts(report)["refused"] == 1
    assert [row["id"] for row in owner.rows("messages")] == ["m1@x.org"]
