"""Exports of chats as Python values, and other values for any of their parts."""

import random
from typing import Any

VALUES = (None, True, 5, 1e300, "text", [], {}, [None], [[1]], {"a": None}, [{"a": [5]}], "\ud800")


def changed(value: Any, draw: random.Random) -> Any:
    """A value of which one part is another value."""
    if draw.random() < 0.3 or not isinstance(value, (dict, list)) or not value:
        return draw.choice(VALUES)
    if isinstance(value, list):
        place = draw.randrange(len(value))
        return [changed(item, draw) if n == place else item for n, item in enumerate(value)]
    name = draw.choice(list(value))
    return {key: changed(item, draw) if key == name else item for key, item in value.items()}


def slack() -> dict[str, Any]:
    message: dict[str, Any] = {
        **{"type": "message", "user": "U1", "ts": "1772528400.000100", "text": "<@U1> <#C1|x> ebb"},
        **{"thread_ts": "1772528400.000100", "edited": {"user": "U1", "ts": "1772528401.0"}},
        "reactions": [{"name": "wave", "users": ["U1"], "count": 1}],
        "attachments": [{"title": "x", "fields": [{"title": "a", "value": "b"}], "text": "y"}],
        "files": [{"id": "F1", "name": "a.png", "title": "A", "permalink": "https://x.org"}],
        "blocks": [{"type": "rich_text", "elements": [{"type": "text", "text": "x"}]}],
    }
    profile = {"real_name": "Ada", "display_name": "ada", "email": "ada@x.org", "title": "Pilot"}
    channel = {"id": "C1", "name": "general", "created": 1772528400, "members": ["U1"]}
    return {
        "users.json": [{"id": "U1", "name": "ada", "profile": profile}],
        "channels.json": [{**channel, "topic": {"value": "tides"}, "purpose": {"value": "x"}}],
        "dms.json": [{"id": "D1", "members": ["U1", "U2"]}],
        "general/2026-03-03.json": [message, {"ts": "1772528402.1", "text": "last"}],
    }


def chatgpt() -> list[Any]:
    metadata = {"model_slug": "m", "attachments": [{"id": "file-1", "name": "a.png"}]}
    parts = [
        "ebb",
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"},
    ]
    message = {
        **{"id": "1", "author": {"role": "user", "name": None}, "create_time": 1772528400.1},
        **{"content": {"content_type": "text", "parts": parts}, "metadata": metadata},
    }
    mapping = {
        "0": {"id": "0", "message": None, "parent": None, "children": ["1"]},
        "1": {"id": "1", "message": message, "parent": "0", "children": ["2"]},
        "2": {"id": "2", "message": {**message, "id": "2"}, "parent": "1", "children": []},
    }
    return [
        {
            "id": "x",
            "title": "Tide",
            "create_time": 1772528400.0,
            "update_time": 1.5,
            "mapping": mapping,
        }
    ]


def claude() -> list[Any]:
    content = [
        {"type": "text", "text": "ebb"},
        {"type": "tool_use", "name": "x", "input": {"a": 1}},
    ]
    message = {
        **{"uuid": "m", "text": "ebb", "sender": "human", "created_at": "2026-03-03T10:00:00Z"},
        **{"content": content, "parent_message_uuid": None, "files": [{"file_name": "a.png"}]},
        "attachments": [{"file_name": "a.txt", "extracted_content": "flood"}],
    }
    chat = {"uuid": "k", "name": "Tide", "summary": "s", "created_at": "2026-03-03T10:00:00Z"}
    return [
        {
            **chat,
            "updated_at": "2026-03-03T10:00:00Z",
            "chat_messages": [message, {**message, "uuid": "n"}],
        }
    ]
