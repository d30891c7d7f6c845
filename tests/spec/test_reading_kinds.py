"""What the reading pages call a record."""

from pathlib import Path

from tests.helpers import worlds
from tests.helpers.worlds import Connection, World
from tests.spec.reading_visits import entered, opened, text


def test_a_message_of_a_chat_that_has_a_title_is_a_chat_message(tmp_path: Path) -> None:
    roles = {"conversation": "primary-title", "thread_id": "thread", "author": "actor"}
    fields = {name: worlds.text(role) for name, role in roles.items()}
    fields |= {"text": worlds.text("primary-text"), "at": worlds.moment()}
    query = {"exact_filters": ["thread_id"], "search": {"lexical_fields": ["text"]}}
    stream = worlds.stream("chat_messages", fields, "at", query=query)
    message = {
        "conversation": "Pier",
        "thread_id": "t",
        "author": "Noor",
        "text": "The tide turns.",
    }
    row = worlds.row("chat_messages", "c1", **message, at="2026-03-01T09:00:00Z")
    house = worlds.build(World((Connection("pier", "chat", "Pier", (stream,), (row,)),)), tmp_path)
    found = text(opened(entered(house.app, house.grant()[1]), "tide"))
    assert "Chat message" in found and "From Noor" in found and "Mail" not in found
