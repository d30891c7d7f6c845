"""Ids that files share, files of one shape, and the same export under another name."""

import json
from typing import Any

import pytest

from tests.formats.owner import Owner, counts, write, zipped


def telegram(chat: int, *texts: str) -> dict[str, Any]:
    messages = [
        {"id": n, "type": "message", "date": f"2026-03-0{n}T10:00:00", "from": "Noor", "text": text}
        for n, text in enumerate(texts, start=1)
    ]
    return {"name": f"Chat {chat}", "type": "personal_chat", "id": chat, "messages": messages}


def test_chats_with_the_same_ids_are_kept_apart(owner: Owner) -> None:
    one, two = telegram(9, "barnacle", "kelp"), telegram(44, "paint", "varnish")
    whole = {"about": "x", "contacts": {"list": [{"user_id": 9, "first_name": "Noor"}]}}
    whole |= {"chats": {"about": "y", "list": [one, two]}}
    files = {"a/result.json": one, "b/result.json": two, "c/result.json": whole}
    folder = write(owner.home / "x", {name: json.dumps(file) for name, file in files.items()})
    assert owner.bring(folder).count("is read as telegram") == 3
    assert {row["id"] for row in owner.rows("chat_messages")} == {"9-1", "9-2", "44-1", "44-2"}
    owner.finds("barnacle", "chat_messages:9-1")
    owner.finds("Noor", "contacts:9")
    owner.again(folder)


def test_messages_of_messenger_are_utf_8(owner: Owner) -> None:
    people = [{"name": name} for name in ("Ren\u00c3\u00a9", "Ada")]
    message = {"sender_name": people[0]["name"], "timestamp_ms": 1772528400123, "content": "Phare"}
    old = {"participants": people, "messages": [message], "thread_path": "inbox/rene_1"}
    new = {"participants": ["Ada", "Bo"], "threadName": "Bo_12", "messages": []}
    sent = {"senderName": "Bo", "text": "kelp", "timestamp": 1772528400123, "media": []}
    files = {"a/message_1.json": old, "b/Bo_12.json": new | {"messages": [sent]}}
    folder = write(owner.home / "x", {name: json.dumps(file) for name, file in files.items()})
    owner.bring(folder)
    rows = {row["data"]["author"]: row["data"] for row in owner.rows("chat_messages")}
    assert rows["Ren\u00e9"]["sent_at"] == "2026-03-03T09:00:00.123000Z"
    assert rows["Bo"]["conversation"] == "Bo"
    owner.again(folder)


def calendar(name: str, text: str) -> str:
    event = f"BEGIN:VEVENT\nUID:1\nSUMMARY:{text}\nDTSTART:20260703T090000Z\nEND:VEVENT\n"
    return f"BEGIN:VCALENDAR\n{name}{event}END:VCALENDAR\n"


def test_calendars_with_the_same_ids_are_kept_apart(owner: Owner) -> None:
    names = ("X-WR-CALNAME:Work\n", "X-WR-CALNAME:Home\n", "", "")
    folder = write(
        owner.home / "x", {f"{n}.ics": calendar(t, f"E{n}") for n, t in enumerate(names)}
    )
    report = owner.bring(folder)
    assert "rows with the id of a different record in an earlier file: 1." in report
    rows = {row["id"]: row["data"]["summary"] for row in owner.rows("events")}
    assert {rows["Work/1"], rows["Home/1"], rows["1"]} == {"E0", "E1", "E2"} and len(rows) == 4
    owner.again(folder)


def test_rows_of_several_files_with_one_id_are_all_kept(owner: Owner) -> None:
    folder = write(
        owner.home / "x",
        {
            "a/boats.csv": "id,name\n1,Barnacle\n2,Kelp\n",
            "b/boats.csv": "id,name\n1,Gull\n2,Kelp\n",
        },
    )
    assert counts(owner.bring(folder))["new"] == 3
    assert {row["data"]["name"] for row in owner.rows("boats")} == {"Barnacle", "Kelp", "Gull"}
    owner.again(folder)


def test_files_of_one_shape_in_a_folder_are_one_stream(owner: Owner) -> None:
    files: dict[str, bytes | str] = {}
    for n in range(5):
        people = {"people": [{"name": f"Noor {n}"}]} if n % 2 else {}
        photo = {"title": f"IMG_{n}.jpg", "description": f"Pier {n}", "url": "https://x", **people}
        files[f"Takeout/Photos/IMG_{n}.jpg.json"] = json.dumps(photo)
        files[f"Takeout/Photos/IMG_{n}.jpg"] = b"\xff\xd8\xff"
    path = zipped(owner.home / "takeout.zip", files)
    owner.bring(path)
    assert len(owner.rows("Photos")) == 5
    owner.finds("Noor", "Photos:")
    owner.again(path)


def test_an_object_keeps_its_own_text_beside_its_arrays(owner: Owner) -> None:
    project = {"name": "Harbour", "prompt_template": "Speak like a sailor", "docs": [{"t": "tide"}]}
    wrapper = {"count": 1, "next": "https://x.org", "items": [{"id": 1}]}
    files = {"project.json": json.dumps(project), "page.json": json.dumps(wrapper)}
    assert counts(owner.bring(write(owner.home / "x", dict(files))))["new"] == 3
    assert [row["data"]["name"] for row in owner.rows("project about")] == ["Harbour"]
    owner.again(owner.home / "x")


TABLE = "date,payee,amount\n2026-01-01,Pier,-1.50\n2026-01-02,Kelp,-2.50\n2026-01-03,Gull,3.50\n"


def test_the_export_of_the_next_month_goes_into_the_stream_of_the_first(owner: Owner) -> None:
    names = ("bank-2026-01.csv", "bank-2026-02 (1).csv", "bank 01.03.2026.csv")
    for name in names:
        owner.bring(write(owner.home, {name: TABLE + "2026-02-01,Fee,-1.00\n"}) / name)
    assert len(owner.rows("bank-2026-01")) == 4
    other = write(owner.home, {"bank-2026-04.csv": "date,text\n2026-01-01,Pier\n"})
    assert "New stream 'bank-2026-04'" in owner.bring(other / "bank-2026-04.csv")


def test_an_export_under_another_name_is_not_imported_twice(owner: Owner) -> None:
    write(owner.home, {"bank.csv": TABLE, "download.csv": TABLE + "2026-02-01,Fee,-1.00\n"})
    owner.bring(owner.home / "bank.csv")
    report = owner.bring(owner.home / "download.csv", code=1)
    assert (
        "3 of the first 4 rows for the new stream 'download'" in report
        and "--stream download" in report
    )
    assert "--stream bank" in report
    assert counts(owner.bring(owner.home / "download.csv", "--stream", "bank"))["new"] == 1


@pytest.mark.parametrize(("answer", "streams"), [("y", ("bank", "download")), ("n", ("bank",))])
def test_the_question_on_a_terminal_decides_whether_rows_are_imported_twice(
    owner: Owner, answer: str, streams: tuple[str, ...]
) -> None:
    write(owner.home, {"bank.csv": TABLE, "download.csv": TABLE})
    owner.bring(owner.home / "bank.csv")
    words = ("import", str(owner.home / "download.csv"), "--connection", "c")
    shown = owner.shell.terminal(*words, answer=answer, columns=300)
    assert "3 of the first 3 rows for the new stream 'download' are already in 'bank'." in shown
    assert "Create 'download' anyway? [y/N]: " in shown
    created = owner.shell.ok("stats").stdout
    assert ("download" in created) == ("download" in streams), created
    assert ("No row of this stream was imported." in shown) == (answer == "n")
    if answer == "n":
        assert "--stream bank" in shown and "--stream download" in shown
    else:
        assert len(owner.rows("download")) == 3


def test_a_file_without_records_is_an_error(owner: Owner) -> None:
    path = write(owner.home, {"x.json": '{"items": []}'}) / "x.json"
    assert "Nothing was imported: no record was found." in owner.bring(path, code=1)


def test_bookmarks_in_backups_of_browsers(owner: Owner) -> None:
    pier = {"title": "Pier", "uri": "https://x.org/a", "dateAdded": 1772528400000000, "tags": "a,b"}
    bar = {"title": "Bar", "children": [pier]}
    firefox = {"guid": "root________", "title": "", "root": "placesRoot", "children": [bar]}
    gull = {
        "name": "Gull",
        "type": "url",
        "url": "https://x.org/b",
        "date_added": "13417002000000000",
    }
    chrome = {"roots": {"bookmark_bar": {"name": "Bar", "children": [gull]}}, "version": 1}
    files = {"bookmarks.json": json.dumps(firefox), "Bookmarks": json.dumps(chrome)}
    owner.bring(write(owner.home / "x", dict(files)))
    rows = {row["data"]["title"]: row["data"] for row in owner.rows("bookmarks")}
    assert rows["Pier"]["tags"] == ["a", "b"] and rows["Pier"]["folder"] == "Bar"
    assert {row["added_at"] for row in rows.values()} == {"2026-03-03T09:00:00Z"}
    owner.again(owner.home / "x")


def test_notes_of_google_keep(owner: Owner) -> None:
    usual = {"isTrashed": False, "isPinned": True, "userEditedTimestampUsec": 1772528400000000}
    usual |= {"createdTimestampUsec": 1772528400000000}
    notes = [
        usual | {"title": "Boat", "textContent": "varnish", "labels": [{"name": "Pier"}]},
        usual | {"title": "Packing", "listContent": [{"text": "Sextant", "isChecked": True}]},
        usual | {"title": "Old", "textContent": "gone", "isTrashed": True},
    ]
    files = {f"Takeout/Keep/{n}.json": json.dumps(note) for n, note in enumerate(notes)}
    report = owner.bring(zipped(owner.home / "x.zip", dict(files)))
    rows = {row["data"]["title"]: row["data"] for row in owner.rows("notes")}
    assert rows["Boat"]["tags"] == ["Pier"] and rows["Packing"]["text"] == "- Sextant"
    assert len(rows) == 2 and "it is in the trash" in report
    owner.again(owner.home / "x.zip")


def test_conversations_with_deepseek(owner: Owner) -> None:
    def node(key: str, parent: str | None, kind: str, text: str) -> dict[str, Any]:
        fragments = [{"type": kind, "content": text}]
        message = {"files": [], "inserted_at": "2026-03-03T10:01:00+08:00", "fragments": fragments}
        return {"id": key, "parent": parent, "children": [], "message": message}

    nodes = [node("1", None, "REQUEST", "neap?"), node("2", "1", "RESPONSE", "seven days")]
    chats = [
        {"id": key, "title": key, "inserted_at": "2026-03-03T10:00:00+08:00"}
        | {"mapping": {one["id"]: one for one in nodes}}
        for key in ("a", "b")
    ]
    path = write(owner.home, {"conversations.json": json.dumps(chats)}) / "conversations.json"
    owner.bring(path)
    rows = {row["id"]: row["data"] for row in owner.rows("chat_messages")}
    assert rows.keys() == {"a-1", "a-2", "b-1", "b-2"}
    assert rows["a-1"]["author"] == "user" and rows["a-1"]["app"] == "DeepSeek"
    assert rows["a-2"]["sent_at"] == "2026-03-03T10:01:00+08:00"
    owner.again(path)


def test_files_of_chatgpt_have_their_own_names(owner: Owner) -> None:
    content = {"content_type": "text", "parts": ["plan?"]}
    message = {"id": "m", "author": {"role": "user"}, "content": content}
    message |= {"metadata": {"attachments": [{"id": "file-Pdf", "name": "plan.txt"}]}}
    chat = {"title": "T", "mapping": {"m": {"id": "m", "children": [], "message": message}}}
    files: dict[str, bytes | str] = {"conversations.json": json.dumps([chat])}
    files |= {"file-Pdf.dat": "The oyster bank"}
    files |= {"conversation_asset_file_names.json": json.dumps({"file-Pdf.dat": "plan.txt"})}
    owner.bring(zipped(owner.home / "x.zip", files))
    (row,) = owner.rows("attachments")
    assert row["data"]["filename"] == "plan.txt" and row["data"]["text"] == "The oyster bank"
