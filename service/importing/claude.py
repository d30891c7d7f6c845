"""Conversations with Claude, as its data export has them."""

import re
from collections.abc import Iterator
from typing import Any

from service.importing.chat import MANIFEST, Chats, conversations
from service.importing.source import Format, Item, Source

BEGINS = re.compile(rb'\s*\[\s*\{[^\x00]*?"chat_messages"\s*:\s*\[')


def read(source: Source) -> Iterator[Item]:
    """The conversations and their messages; texts taken from files are attachments."""
    chats = Chats(source, "Claude")
    for number, found in enumerate(conversations(source), start=1):
        if not isinstance(found, dict) or not isinstance(found.get("chat_messages"), list):
            yield number, "This is not a conversation: it has no chat_messages."
            continue
        key, title = str(found.get("uuid") or ""), found.get("name") or "Untitled"
        times = {"started_at": found.get("created_at"), "updated_at": found.get("updated_at")}
        yield number, chats.conversation(key, title, description=found.get("summary"), **times)
        for position, message in enumerate(found["chat_messages"]):
            owner, at = message.get("uuid"), message.get("created_at")
            yield number, chats.message(
                key,
                title,
                id=owner,
                author=message.get("sender"),
                text=_text(message),
                sent_at=at,
                position=position,
                reply_to=message.get("parent_message_uuid"),
            )
            texts = [one for one in message.get("attachments") or [] if _extracted(one)]
            for place, one in enumerate(texts, start=1):
                name, content = one.get("file_name") or f"text-{place}.txt", _extracted(one)
                yield number, chats.attached.row(
                    owner, 1_000 + place, name, content.encode(), at=at, text=content
                )
            files = [one["file_name"] for one in message.get("files") or [] if one.get("file_name")]
            yield from ((number, file) for file in chats.attached.files(owner, files, at=at))
    chats.attached.report()


def _extracted(attachment: dict[str, Any]) -> str:
    return str(attachment.get("extracted_content") or "")


def _text(message: dict[str, Any]) -> str:
    """The text of a message: its parts, if it has any; those of tools with what they returned."""
    texts = []
    for part in message.get("content") or []:
        inner = part.get("text") or part.get("thinking") or part.get("content") or part.get("input")
        if isinstance(inner, list):
            inner = "\n".join(str(one.get("text", "")) for one in inner if isinstance(one, dict))
        if inner:
            name = f"{part['name']}: " if part.get("type") in ("tool_use", "tool_result") else ""
            texts.append(f"{name}{inner}")
    return "\n\n".join(texts) or str(message.get("text") or "")


FORMAT = Format("claude", (), BEGINS, read, MANIFEST, any_extension=True)
