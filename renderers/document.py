"""`fetch`: one block, the exact JSON mirror of the document; at a shell, lines beside its text."""

import orjson

from evidence import wire
from evidence.records import Document
from renderers.rendering import Context, Rendering, header, quoted, value_of


def render(document: Document, context: Context) -> Rendering:
    """The five members, once as `structuredContent` and once as the same JSON in text."""
    structured = wire.document(document, base_url=context.base_url)
    return Rendering((orjson.dumps(structured).decode(),), structured)


def about(document: Document, context: Context) -> list[str]:
    """The lines beside the text of a document: title, address, metadata, calls that read on."""
    url = wire.absolute(context.base_url, document.url)
    lines = [header("fetch", id=document.id), f"title: {quoted(document.title)}"]
    lines += [f"url: {value_of(url)}"] if url else []
    lines += [f"{value_of(name)}: {value_of(value)}" for name, value in document.metadata.items()]
    if document.next_read:
        lines.append(f"next_read: {context.spell(document.next_read)}")
    lines += [f"{value_of(name)}: {context.spell(one)}" for name, one in document.more.items()]
    lines += [
        f"{value_of(f'bytes.{one.field_path}')}: {context.blob(one)}" for one in document.bytes
    ]
    return lines
