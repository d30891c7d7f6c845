"""What a stranger's file holds is stored, or the report names what is not."""

import json

from openpyxl import Workbook
from sqlite_utils import Database

from tests.formats.owner import Owner, write, zipped
from tests.formats.test_strangers import OUTLOOK


def test_what_bots_and_layouts_of_slack_say_is_kept(owner: Owner) -> None:
    fields = [{"title": "Env", "value": "production"}]
    deploy = {"pretext": "Deploying", "fallback": "Deployed", "fields": fields}
    parts = [
        {"type": "text", "text": "Ahoy "},
        {"type": "emoji", "name": "wave"},
        {"type": "channel", "channel_id": "C1"},
    ]
    listed = {"type": "rich_text_list", "elements": [{"elements": parts}]}
    plan = {"id": "F1", "name": "plan.pdf", "title": "The harbour plan"}
    bot = {"subtype": "bot_message", "username": "deploybot", "text": "", "ts": "1772528400.1"}
    files = {
        "users.json": [{"id": "U1", "name": "ada"}],
        "channels.json": [{"id": "C1", "name": "general"}],
        "general/2026-03-03.json": [
            bot | {"attachments": [deploy]},
            {"user": "U1", "ts": "1772528401.1", "text": "", "blocks": [{"elements": [listed]}]},
            {"user": "U1", "ts": "1772528402.1", "text": "", "files": [plan]},
        ],
    }
    owner.bring(zipped(owner.home / "x.zip", {n: json.dumps(f) for n, f in files.items()}))
    texts = {row["id"][3:]: row["data"]["text"] for row in owner.rows("chat_messages")}
    assert texts == {
        "1772528400.1": "Deploying\nDeployed\nEnv: production",
        "1772528401.1": "Ahoy :wave:#C1",
        "1772528402.1": "plan.pdf\nThe harbour plan",
    }


def test_every_text_in_the_messages_of_chatgpt_is_kept(owner: Owner) -> None:
    quote = {"content_type": "tether_quote", "url": "https://x.org/p", "text": "Kelp", "title": "T"}
    profile = {"content_type": "user_editable_context", "user_profile": "I am a pilot"}
    context = {"content_type": "model_editable_context", "model_set_context": "likes tides"}
    spoken = {"audio_asset_pointer": {"asset_pointer": "sediment://file_9z"}}
    speech = {"content_type": "multimodal_text", "parts": [spoken]}
    report = {"attachments": [{"id": "file-9y", "name": "report.pdf"}]}
    found = []
    for number, content in enumerate((quote, profile, context, speech, {"parts": [""]})):
        message = {"id": f"m{number}", "author": {"role": "user"}, "content": content}
        node = {"message": message, "parent": None, "children": []}
        found.append({"title": "Tide", "mapping": {f"n{number}": node}})
    found[3]["mapping"]["n3"]["message"]["metadata"] = report
    path = write(owner.home, {"conversations.json": json.dumps(found)}) / "conversations.json"
    said = owner.bring(path)
    assert "Left out: messages without text or files (1)." in said and "file_9z" in said
    assert {row["id"] for row in owner.rows("conversations")} == {f"n{n}" for n in range(5)}
    rows = {row["id"]: row["data"] for row in owner.rows("chat_messages")}
    assert rows["m0"]["text"] == "https://x.org/p\n\nKelp\n\nT"
    assert rows["m1"]["text"] == "I am a pilot" and rows["m2"]["text"] == "likes tides"
    assert rows["m3"]["links"] == ["report.pdf"]


def test_what_a_workbook_a_database_and_a_calendar_leave_out_is_reported(owner: Owner) -> None:
    book = Workbook()
    book.active.append(["id", "text"])
    book.active.append(["a", "pier"])
    book.create_sheet("Notes").append(["a single line"])
    book.save(owner.home / "book.xlsx")
    report = owner.bring(owner.home / "book.xlsx")
    assert "Notes: There are no rows after the header: a single line." in report
    database = Database(owner.home / "log.db")
    database.execute("create table entry (id integer primary key, text)")
    database.execute("insert into entry values (1, 'pier')")
    database.execute("create table vacant (id)")
    database.execute("create view recent as select * from entry")
    database.execute("create virtual table found using fts5(text)")
    database.conn.commit()
    database.close()
    report = owner.bring(owner.home / "log.db")
    assert "Left out (views, indexes and empty tables): recent, found, vacant." in report
    broken = OUTLOOK.replace("CLASS:PUBLIC", "a line without a name")
    report = owner.bring(write(owner.home, {"x.ics": broken}) / "x.ics")
    assert "Left out (1 ×):" in report and "a line without a name" in report
