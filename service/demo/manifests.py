"""The manifests of the demo owner's connections."""

from typing import Any

TIMES = ["gte", "gt", "lte", "lt"]


def _text(role: str | None = None) -> dict[str, Any]:
    return {"type": "string", "x_pdpp_type": "text"} | ({"x_pdpp_role": role} if role else {})


def _word(role: str | None = None) -> dict[str, Any]:
    return {"type": "string"} | ({"x_pdpp_role": role} if role else {})


def _time(role: str | None = "event-time") -> dict[str, Any]:
    found = {"type": "string", "format": "date-time", "x_pdpp_type": "timestamp"}
    return found | ({"x_pdpp_role": role} if role else {})


def _stream(
    name: str,
    label: str,
    cursor: str | None,
    properties: dict[str, Any],
    query: dict[str, Any],
    **more: Any,
) -> dict[str, Any]:
    document = {"name": name, "label": label, "primary_key": ["id"]}
    if cursor:
        document["cursor_field"] = cursor
        query.setdefault("range_filters", {})[cursor] = TIMES
        aggregations = query.setdefault("aggregations", {})
        aggregations.setdefault("min", []).append(cursor)
        aggregations.setdefault("max", []).append(cursor)
        aggregations["group_by_time"] = [cursor]
    schema = {"type": "object", "properties": {"id": {"type": "string"}, **properties}}
    return document | {"schema": schema, "query": query, **more}


def _has_many(name: str, stream: str, key: str) -> dict[str, Any]:
    return {"name": name, "stream": stream, "foreign_key": key, "cardinality": "has_many"}


def _mail() -> dict[str, Any]:
    messages = _stream(
        "messages",
        "Mail messages",
        "received_at",
        {
            "thread_id": _word(),
            "subject": _text("primary-title"),
            "body": _text("primary-text"),
            "from": _word("actor"),
            "to": {"type": "array"},
            "folder": _word(),
            "language": _word(),
            "received_at": _time(),
            "size": {"type": "integer"},
            "unread": {"type": "boolean"},
        },
        {
            "exact_filters": ["id", "thread_id", "from", "folder", "language", "unread"],
            "range_filters": {"size": TIMES},
            "aggregations": {
                "sum": ["size"],
                "min": ["size"],
                "max": ["size"],
                "group_by": ["from", "folder", "language", "unread"],
                "count_distinct": ["from", "thread_id", "folder"],
            },
            "search": {"lexical_fields": ["subject", "body", "from"]},
            "expand": [{"name": "attachments", "default_limit": 5, "max_limit": 20}],
        },
        relationships=[_has_many("attachments", "attachments", "message_id")],
        views=[
            {"id": "basic", "label": "Subjects", "fields": ["id", "subject", "received_at"]},
            {"id": "full", "label": "All but flags", "fields": ["id", "subject", "from", "body"]},
        ],
    )
    threads = _stream(
        "threads",
        "Mail threads",
        "last_at",
        {"topic": _text("primary-title"), "last_at": _time(), "messages": {"type": "integer"}},
        {
            "aggregations": {"sum": ["messages"]},
            "search": {"lexical_fields": ["topic"]},
            "expand": [{"name": "messages", "default_limit": 3, "max_limit": 20}],
        },
        relationships=[_has_many("messages", "messages", "thread_id")],
    )
    return {"streams": [messages, threads, _attachments()]}


def _attachments() -> dict[str, Any]:
    return _stream(
        "attachments",
        "Mail attachments",
        "received_at",
        {
            "message_id": _word(),
            "filename": _text("primary-title"),
            "mime_type": _word(),
            "received_at": _time(),
            "blob_ref": {"type": "object", "x_pdpp_role": "blob-reference"},
        },
        {
            "aggregations": {"group_by": ["mime_type"], "count_distinct": ["mime_type"]},
            "search": {"lexical_fields": ["filename"]},
        },
    )


def _chat() -> dict[str, Any]:
    messages = _stream(
        "messages",
        "Chat messages",
        "sent_at",
        {
            "channel": _word(),
            "author": _word("actor"),
            "text": _text("primary-text"),
            "language": _word(),
            "sent_at": _time(),
            "reactions": {"type": "integer"},
            "reply_to": _word(),
        },
        {
            "range_filters": {"reactions": TIMES},
            "exact_filters": ["id", "channel", "author", "language", "reply_to"],
            "aggregations": {
                "sum": ["reactions"],
                "max": ["reactions"],
                "group_by": ["channel", "author", "language"],
                "count_distinct": ["channel", "author"],
            },
            "search": {"lexical_fields": ["text"]},
        },
    )
    channels = _stream(
        "channels",
        "Channels",
        None,
        {"topic": _text("primary-title"), "members": {"type": "integer"}},
        {
            "search": {"lexical_fields": ["topic"]},
            "expand": [{"name": "messages", "default_limit": 5}],
        },
        relationships=[_has_many("messages", "messages", "channel")],
    )
    return {"streams": [messages, channels]}


def _notes() -> dict[str, Any]:
    notes = _stream(
        "notes",
        "Notes",
        "updated_at",
        {
            "title": _text("primary-title"),
            "text": _text("primary-text"),
            "language": _word(),
            "tags": {"type": "array"},
            "outline": {"type": "object"},
            "updated_at": _time(),
            "pinned": {"type": "boolean"},
            "picture": {"type": "object", "x_pdpp_role": "media"},
        },
        {
            "exact_filters": ["id", "language", "pinned"],
            "aggregations": {
                "group_by": ["language", "pinned"],
                "count_distinct": ["language"],
            },
            "search": {"lexical_fields": ["title", "text"]},
        },
        views=[{"id": "titles", "label": "Titles", "fields": ["id", "title", "updated_at"]}],
    )
    return {"streams": [notes]}


def _calendar() -> dict[str, Any]:
    events = _stream(
        "events",
        "Events",
        "start",
        {
            "summary": _text("primary-title"),
            "description": _text("primary-text"),
            "place": _word(),
            "attendees": {"type": "array"},
            "start": _time(),
            "minutes": {"type": "integer"},
            "all_day": {"type": "boolean"},
        },
        {
            "range_filters": {"minutes": TIMES},
            "exact_filters": ["id", "place", "all_day"],
            "aggregations": {
                "sum": ["minutes"],
                "min": ["minutes"],
                "max": ["minutes"],
                "group_by": ["place", "all_day"],
                "count_distinct": ["place"],
            },
            "search": {"lexical_fields": ["summary", "description", "place"]},
        },
    )
    return {"streams": [events]}


def _bank() -> dict[str, Any]:
    payments = _stream(
        "payments",
        "Payments",
        "booked_at",
        {
            "payee": _text("primary-title"),
            "purpose": _text("primary-text"),
            "category": _word(),
            "currency": {"type": "string", "x_pdpp_type": "currency"},
            "amount": {"type": "number", "x_pdpp_role": "amount"},
            "booked_at": {"type": "string", "format": "date", "x_pdpp_role": "event-time"},
        },
        {
            "range_filters": {"amount": TIMES},
            "aggregations": {
                "sum": ["amount"],
                "min": ["amount"],
                "max": ["amount"],
                "group_by": ["payee", "category", "currency"],
                "count_distinct": ["payee", "category"],
            },
            "search": {"lexical_fields": ["payee", "purpose"]},
        },
    )
    return {"streams": [payments]}


MAIL, CHAT, NOTES, CALENDAR, BANK = _mail(), _chat(), _notes(), _calendar(), _bank()
