"""Conversations with ChatGPT and Claude, from the data exports of these services."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson

from evidence.errors import InvalidRequest
from service.importing.rows import CHAT_MANIFEST, Chats, Members, conversations, time_of
from service.importing.source import Content, Format, Item, Source
from service.records.intake import Row

_CHATGPT = re.compile(rb'\s*\[\s*\{[^\x00]*?"mapping"\s*:\s*\{')
_DEEPSEEK = re.compile(rb'\s*\[\s*\{[^\x00]*?"inserted_at"\s*:[^\x00]*?"mapping"\s*:\s*\{')
_NAMES = "conversation_asset_file_names.json"
NO_MESSAGE = "This is not a message: it has no id."
_POINTER = re.compile(r"^[a-z-]+://")
#: Members of a message's content other than its texts.
_ABOUT = frozenset({"content_type", "language", "response_format_name", "tether_id"})
_FILE = re.compile(r"(?:^|/)(file[-_][A-Za-z0-9]+)[^/]*$")


def read_chatgpt(source: Source) -> Iterator[Item]:
    """The conversations with all their messages, including those of other branches."""
    app = "DeepSeek" if source.format == DEEPSEEK.name else "ChatGPT"
    chats, skipped = Chats(source, app), Counter[str]()
    names = {match[1]: name for name in source.tree.files if (match := _FILE.search(name))}
    chats.attached.names = _file_names(source)
    for number, content in enumerate(conversations(source), start=1):
        yield number, partial(_chatgpt, chats, content, names, skipped)
    chats.report()
    for which, count in skipped.items():
        source.notes.append(f"Left out: messages {which} ({count}).")


def _chatgpt(
    chats: Chats, content: str, names: dict[str, str], skipped: Counter[str]
) -> Iterator[Content]:
    data, members = orjson.loads(content), chats.members
    if not isinstance(data, dict) or not isinstance(mapping := data.get("mapping"), dict):
        yield "This is not a conversation: it has no mapping of messages."
        return
    key = str(data.get("conversation_id") or data.get("id") or next(iter(mapping), 0))
    title = members.get(data, "title", str) or "Untitled"
    started, updated = (
        time_of(data.get(f"{old}_time")) or members.get(data, new, str)
        for old, new in (("create", "inserted_at"), ("update", "updated_at"))
    )
    yield chats.conversation(key, title, started_at=started, updated_at=updated)

    def rows(position: int, parent: str | None, message: Any) -> Iterator[Row | str]:
        if not isinstance(message, dict) or not isinstance(id := message.get("id"), str):
            yield NO_MESSAGE
            return
        content = members.get(message, "content", dict)
        text, files = _content(content, members)
        metadata = members.get(message, "metadata", dict)
        uploads = members.all(metadata, "attachments", dict)
        files += filter(None, (members.get(upload, "id", str) for upload in uploads))
        if not text.strip() and not files and not uploads:
            skipped["without text or files"] += 1
            return
        if metadata.get("is_visually_hidden_from_conversation"):
            skipped["that ChatGPT hides"] += 1
            return
        at = time_of(message.get("create_time")) or message.get("inserted_at") or started
        author = members.get(message, "author", dict)
        yield chats.message(
            key,
            title,
            id=id,
            author=members.get(author, "name", str) or members.get(author, "role", str),
            text=text,
            sent_at=at,
            position=position,
            reply_to=parent,
            kind=members.get(content, "content_type", str),
            model=members.get(metadata, "model_slug", str),
            links=list(filter(None, (members.get(upload, "name", str) for upload in uploads))),
        )
        references = [names.get(file, file) for file in dict.fromkeys(files)]
        yield from chats.attached.files(id, references, at=at)

    nodes = {
        id: node if isinstance(node, dict) else {"message": node} for id, node in mapping.items()
    }
    for id, node in nodes.items():
        if isinstance(message := node.get("message"), dict) and "fragments" in message:
            node["message"] = _of_deepseek(message, f"{key}-{id}", members)
    for position, (parent, message) in enumerate(_ordered(nodes)):
        yield partial(rows, position, parent, message)


def _of_deepseek(message: dict[str, Any], key: str, members: Members) -> dict[str, Any]:
    """A message of DeepSeek, whose ids are those of nodes, in the form of ChatGPT."""
    fragments = members.all(message, "fragments", dict)
    files = members.all(message, "files", dict)
    own = any(fragment.get("type") == "REQUEST" for fragment in fragments)
    parts = [members.get(fragment, "content", str) for fragment in fragments]
    parts += [members.get(file, name, str) for file in files for name in ("file_name", "content")]
    return {
        "id": key,
        "author": {"role": "user" if own else "assistant"},
        "inserted_at": members.get(message, "inserted_at", str),
        "content": {"parts": list(filter(None, parts))},
        "metadata": {"model_slug": members.get(message, "model", str)},
    }


def _file_names(source: Source) -> dict[str, str]:
    """The names that files had, by the names that they have in an export."""
    file = source.tree.find(_NAMES, source.name)
    try:
        names = orjson.loads(file.read()) if file is not None else {}
    except (InvalidRequest, ValueError):
        return {}
    names = names if isinstance(names, dict) else {}
    return {name: former for name, former in names.items() if isinstance(former, str)}


def _ordered(nodes: dict[str, dict[str, Any]]) -> Iterator[tuple[str | None, Any]]:
    """(id of the previous message, message) in the order of the tree, branch by branch."""
    roots = [id for id, node in nodes.items() if str(node.get("parent") or "") not in nodes]
    waiting: list[tuple[str, str | None]] = [(id, None) for id in reversed(roots)]
    while waiting or nodes:
        id, parent = waiting.pop() if waiting else (next(iter(nodes)), None)
        if (node := nodes.pop(id, None)) is None:
            continue
        if message := node.get("message"):
            yield parent, message
            message_id = message.get("id") if isinstance(message, dict) else None
            parent = message_id if isinstance(message_id, str) else parent
        children = node.get("children")
        if isinstance(children, list):
            waiting += [(str(child), parent) for child in reversed(children)]


def _content(content: dict[str, Any], members: Members) -> tuple[str, list[str]]:
    """The text of a message and its files."""
    texts, files = [], []
    for part in members.all(content, "parts", object):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            texts.append(members.get(part, "text", str))
            inner = members.get(part, "audio_asset_pointer", dict) or part
            if pointer := members.get(inner, "asset_pointer", str):
                files.append(_POINTER.sub("", pointer))
    texts += [text for n, text in content.items() if isinstance(text, str) and n not in _ABOUT]
    for thought in members.all(content, "thoughts", dict):
        texts += [members.get(thought, name, str) for name in ("summary", "content")]
    return "\n\n".join(filter(None, texts)), files


DEEPSEEK = Format("deepseek", (), _DEEPSEEK, read_chatgpt, CHAT_MANIFEST, any_extension=True)
CHATGPT = Format("chatgpt", (), _CHATGPT, read_chatgpt, CHAT_MANIFEST, any_extension=True)


_CLAUDE = re.compile(rb'\s*\[\s*\{[^\x00]*?"chat_messages"\s*:\s*\[')


def read_claude(source: Source) -> Iterator[Item]:
    """The conversations and their messages; texts taken from files are attachments."""
    chats = Chats(source, "Claude")
    for number, content in enumerate(conversations(source), start=1):
        yield number, partial(_claude, chats, content)
    chats.report()


def _claude(chats: Chats, content: str) -> Iterator[Content]:
    data, members = orjson.loads(content), chats.members
    if not isinstance(data, dict) or not isinstance(data.get("chat_messages"), list):
        yield "This is not a conversation: it has no chat_messages."
        return
    key, title = str(data.get("uuid") or ""), members.get(data, "name", str) or "Untitled"
    times = {"started_at": data.get("created_at"), "updated_at": data.get("updated_at")}
    about = members.get(data, "summary", str)
    yield chats.conversation(key, title, description=about, **times)

    def rows(position: int, message: Any) -> Iterator[Row | str]:
        if not isinstance(message, dict) or not isinstance(owner := message.get("uuid"), str):
            yield NO_MESSAGE
            return
        at = message.get("created_at")
        yield chats.message(
            key,
            title,
            id=owner,
            author=members.get(message, "sender", str),
            text=_text(message, members),
            sent_at=at,
            position=position,
            reply_to=members.get(message, "parent_message_uuid", str),
        )
        files = members.all(message, "attachments", dict)
        texts = [(file, members.get(file, "extracted_content", str)) for file in files]
        for number, (file, text) in enumerate(((f, t) for f, t in texts if t), start=1):
            name = members.get(file, "file_name", str) or f"text-{number}.txt"
            content = text.encode()
            yield chats.attached.row(owner, 1_000 + number, name, content, at=at, text=text)
        files = members.all(message, "files", dict)
        references = filter(None, (members.get(file, "file_name", str) for file in files))
        yield from chats.attached.files(owner, list(references), at=at)

    for position, message in enumerate(data["chat_messages"]):
        yield partial(rows, position, message)


def _text(message: dict[str, Any], members: Members) -> str:
    """The text of a message: its parts, if any, including tool calls with their results."""
    texts = []
    for part in members.all(message, "content", dict):
        inner = part.get("text") or part.get("thinking") or part.get("content") or part.get("input")
        if isinstance(inner, list):
            inner = "\n".join(str(part.get("text", "")) for part in inner if isinstance(part, dict))
        if inner:
            tool = part.get("type") in ("tool_use", "tool_result")
            texts.append(f"{members.get(part, 'name', str)}: {inner}" if tool else str(inner))
    return "\n\n".join(texts) or members.get(message, "text", str)


CLAUDE = Format("claude", (), _CLAUDE, read_claude, CHAT_MANIFEST, any_extension=True)
