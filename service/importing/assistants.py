"""Conversations with ChatGPT and Claude, as their data exports have them."""

import re
from collections.abc import Iterator
from typing import Any

from service.importing.rows import Chats, CHAT_MANIFEST, conversations, time_of
from service.importing.source import Format, Item, Source

_CHATGPT = re.compile(rb'\s*\[\s*\{[^\x00]*?"mapping"\s*:\s*\{')
_POINTER = re.compile(r"^[a-z-]+://")
#: Members of a message's content other than its texts.
_ABOUT = frozenset({"content_type", "language", "response_format_name", "tether_id"})
_FILE = re.compile(r"(?:^|/)(file[-_][A-Za-z0-9]+)[^/]*$")


def read_chatgpt(source: Source) -> Iterator[Item]:
    """The conversations with all their messages, including those of other branches."""
    chats, hidden, empty = Chats(source, "ChatGPT"), 0, 0
    named = {found[1]: name for name in source.tree.files if (found := _FILE.search(name))}
    for number, found in enumerate(conversations(source), start=1):
        if not isinstance(found, dict) or not isinstance(found.get("mapping"), dict):
            yield number, "This is not a conversation: it has no mapping of messages."
            continue
        known = found.get("conversation_id") or found.get("id")
        key = str(known or next(iter(found["mapping"]), 0))
        title = found.get("title") or "Untitled"
        started, updated = (time_of(found.get(f"{name}_time")) for name in ("create", "update"))
        yield number, chats.conversation(key, title, started_at=started, updated_at=updated)
        for position, (parent, message) in enumerate(_ordered(found["mapping"])):
            text, files = _content(message.get("content") or {})
            metadata = message.get("metadata") or {}
            uploads = metadata.get("attachments") or []
            files += [one["id"] for one in uploads if one.get("id")]
            if not text.strip() and not files and not uploads:
                empty += 1
                continue
            if metadata.get("is_visually_hidden_from_conversation"):
                hidden += 1
                continue
            at = time_of(message.get("create_time")) or started
            author = message.get("author") or {}
            yield number, chats.message(
                key,
                title,
                id=message["id"],
                author=str(author.get("name") or author.get("role") or ""),
                text=text,
                sent_at=at,
                position=position,
                reply_to=parent,
                kind=(message.get("content") or {}).get("content_type"),
                model=metadata.get("model_slug"),
                links=[one["name"] for one in uploads if one.get("name")],
            )
            here = [named.get(file, file) for file in dict.fromkeys(files)]
            yield from ((number, one) for one in chats.attached.files(message["id"], here, at=at))
    chats.attached.report()
    for count, which in ((hidden, "that ChatGPT hides"), (empty, "without text and files")):
        if count:
            source.notes.append(f"Left out: {count} messages {which}.")


def _ordered(mapping: dict[str, Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """(id of the previous message, message) in the order of the tree, branch by branch."""
    roots = [id for id, node in mapping.items() if node.get("parent") not in mapping]
    waiting: list[tuple[str, str | None]] = [(id, None) for id in reversed(roots)]
    while waiting:
        id, parent = waiting.pop()
        node = mapping.pop(id, None)
        if node is None:
            continue
        message = node.get("message")
        if message:
            yield parent, message
            parent = message["id"]
        waiting += [(child, parent) for child in reversed(node.get("children") or [])]


def _content(content: dict[str, Any]) -> tuple[str, list[str]]:
    """The text of a message and its files."""
    texts, files = [], []
    for part in content.get("parts") or []:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            texts.append(part.get("text") or "")
            inner = part.get("audio_asset_pointer") or part
            if pointer := inner.get("asset_pointer"):
                files.append(_POINTER.sub("", pointer))
    texts += [one for name, one in content.items() if isinstance(one, str) and name not in _ABOUT]
    for thought in content.get("thoughts") or []:
        texts += [thought.get("summary") or "", thought.get("content") or ""]
    return "\n\n".join(filter(None, texts)), files


CHATGPT = Format("chatgpt", (), _CHATGPT, read_chatgpt, CHAT_MANIFEST, any_extension=True)


_CLAUDE = re.compile(rb'\s*\[\s*\{[^\x00]*?"chat_messages"\s*:\s*\[')


def read_claude(source: Source) -> Iterator[Item]:
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
            texts = [
                one for one in message.get("attachments") or [] if one.get("extracted_content")
            ]
            for place, one in enumerate(texts, start=1):
                name, text = one.get("file_name") or f"text-{place}.txt", one["extracted_content"]
                yield number, chats.attached.row(
                    owner, 1_000 + place, name, str(text).encode(), at=at, text=str(text)
                )
            files = [one["file_name"] for one in message.get("files") or [] if one.get("file_name")]
            yield from ((number, file) for file in chats.attached.files(owner, files, at=at))
    chats.attached.report()


def _text(message: dict[str, Any]) -> str:
    """The text of a message: its parts, if any, including tool calls with their results."""
    texts = []
    for part in message.get("content") or []:
        inner = part.get("text") or part.get("thinking") or part.get("content") or part.get("input")
        if isinstance(inner, list):
            inner = "\n".join(str(one.get("text", "")) for one in inner if isinstance(one, dict))
        if inner:
            name = f"{part['name']}: " if part.get("type") in ("tool_use", "tool_result") else ""
            texts.append(f"{name}{inner}")
    return "\n\n".join(texts) or str(message.get("text") or "")


CLAUDE = Format("claude", (), _CLAUDE, read_claude, CHAT_MANIFEST, any_extension=True)
