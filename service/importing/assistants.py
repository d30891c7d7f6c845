"""Conversations with ChatGPT and Claude, as their data exports have them."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson

from service.importing.rows import Chats, CHAT_MANIFEST, conversations, time_of
from service.importing.source import Content, Format, Item, Source
from service.records.intake import Row

_CHATGPT = re.compile(rb'\s*\[\s*\{[^\x00]*?"mapping"\s*:\s*\{')
_POINTER = re.compile(r"^[a-z-]+://")
#: Members of a message's content other than its texts.
_ABOUT = frozenset({"content_type", "language", "response_format_name", "tether_id"})
_FILE = re.compile(r"(?:^|/)(file[-_][A-Za-z0-9]+)[^/]*$")


def read_chatgpt(source: Source) -> Iterator[Item]:
    """The conversations with all their messages, including those of other branches."""
    chats, left_out = Chats(source, "ChatGPT"), Counter[str]()
    names = {match[1]: name for name in source.tree.files if (match := _FILE.search(name))}
    for number, content in enumerate(conversations(source), start=1):
        yield number, partial(_chatgpt, chats, content, names, left_out)
    chats.attached.report()
    for which, count in left_out.items():
        source.notes.append(f"Left out: {count} messages {which}.")


def _chatgpt(
    chats: Chats, content: str, names: dict[str, str], left_out: Counter[str]
) -> Iterator[Content]:
    data = orjson.loads(content)
    if not isinstance(data, dict) or not isinstance(mapping := data.get("mapping"), dict):
        yield "This is not a conversation: it has no mapping of messages."
        return
    key = str(data.get("conversation_id") or data.get("id") or next(iter(mapping), 0))
    title = data.get("title") or "Untitled"
    started, updated = (time_of(data.get(f"{name}_time")) for name in ("create", "update"))
    yield chats.conversation(key, title, started_at=started, updated_at=updated)

    def rows(position: int, parent: str | None, message: dict[str, Any]) -> Iterator[Row]:
        text, files = _content(message.get("content") or {})
        metadata = message.get("metadata") or {}
        uploads = metadata.get("attachments") or []
        files += [upload["id"] for upload in uploads if upload.get("id")]
        if not text.strip() and not files and not uploads:
            left_out["without text and files"] += 1
            return
        if metadata.get("is_visually_hidden_from_conversation"):
            left_out["that ChatGPT hides"] += 1
            return
        at = time_of(message.get("create_time")) or started
        author = message.get("author") or {}
        yield chats.message(
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
            links=[upload["name"] for upload in uploads if upload.get("name")],
        )
        here = [names.get(file, file) for file in dict.fromkeys(files)]
        yield from chats.attached.files(message["id"], here, at=at)

    for position, (parent, message) in enumerate(_ordered(mapping)):
        yield partial(rows, position, parent, message)


def _ordered(mapping: dict[str, Any]) -> Iterator[tuple[str | None, Any]]:
    """(id of the previous message, message) in the order of the tree, branch by branch."""
    nodes = {
        id: node if isinstance(node, dict) else {"message": node} for id, node in mapping.items()
    }
    roots = [id for id, node in nodes.items() if str(node.get("parent") or "") not in nodes]
    waiting: list[tuple[str, str | None]] = [(id, None) for id in reversed(roots)]
    while waiting or nodes:
        id, parent = waiting.pop() if waiting else (next(iter(nodes)), None)
        if (node := nodes.pop(id, None)) is None:
            continue
        if message := node.get("message"):
            yield parent, message
            parent = message.get("id") if isinstance(message, dict) else parent
        children = node.get("children")
        if isinstance(children, list):
            waiting += [(str(child), parent) for child in reversed(children)]


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
    for number, content in enumerate(conversations(source), start=1):
        yield number, partial(_claude, chats, content)
    chats.attached.report()


def _claude(chats: Chats, content: str) -> Iterator[Content]:
    data = orjson.loads(content)
    if not isinstance(data, dict) or not isinstance(data.get("chat_messages"), list):
        yield "This is not a conversation: it has no chat_messages."
        return
    key, title = str(data.get("uuid") or ""), data.get("name") or "Untitled"
    times = {"started_at": data.get("created_at"), "updated_at": data.get("updated_at")}
    yield chats.conversation(key, title, description=data.get("summary"), **times)

    def rows(position: int, message: dict[str, Any]) -> Iterator[Row]:
        owner, at = message["uuid"], message.get("created_at")
        yield chats.message(
            key,
            title,
            id=owner,
            author=message.get("sender"),
            text=_text(message),
            sent_at=at,
            position=position,
            reply_to=message.get("parent_message_uuid"),
        )
        texts = [file for file in message.get("attachments") or [] if file.get("extracted_content")]
        for place, file in enumerate(texts, start=1):
            name, text = file.get("file_name") or f"text-{place}.txt", str(
                file["extracted_content"]
            )
            content = text.encode()
            yield chats.attached.row(owner, 1_000 + place, name, content, at=at, text=text)
        files = [file["file_name"] for file in message.get("files") or [] if file.get("file_name")]
        yield from chats.attached.files(owner, files, at=at)

    for position, message in enumerate(data["chat_messages"]):
        yield partial(rows, position, message)


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
