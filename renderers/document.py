"""`fetch`: one block, the exact JSON mirror of the document."""

import orjson

from evidence import wire
from evidence.model import Document
from renderers.rendering import Context, Rendering


def render(document: Document, context: Context) -> Rendering:
    """The five members, once as `structuredContent` and once as the same JSON in text."""
    structured = wire.document(document, base_url=context.base_url)
    return Rendering((orjson.dumps(structured).decode(),), structured)
