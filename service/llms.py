"""`/llms.txt`: a description of this server for models, generated from the operations."""

from functools import cache
from pathlib import Path

from evidence.model import Continuation
from evidence.version import VERSION
from service.openapi import Mounted
from service.operations import OPERATIONS, bodies
from service.operations.base import AnyOperation, RecordOperation
from service.operations.listings import BLOB, LISTINGS
from service.operations import paper_links as links
from service.operations.papers import PAPER_OPERATIONS

PATH = "/llms.txt"
PAGE = Path(__file__).with_name("llms.md")


def text(mounted: Mounted) -> str:
    """The page, in Markdown."""
    base, surfaces = mounted.public_url or "", list[str]()
    if mounted.records:
        needs = "a client token in the header `Authorization: Bearer <token>`. "
        token = f"You need {needs}You can read what its grant covers."
        surfaces.append(_section("Records", OPERATIONS, f"{base}/mcp", token))
    if mounted.papers:
        token = (
            "You need a token that allows reading papers."
            if mounted.closed
            else "No token is needed."
        )
        surfaces.append(_section("Papers", PAPER_OPERATIONS, f"{base}/mcp/papers", token))
    kinds = {"a person's records": mounted.records, "research papers": mounted.papers}
    return PAGE.read_text(encoding="utf-8").format(
        version=VERSION,
        what=" and ".join(kind for kind, there in kinds.items() if there),
        surfaces="\n\n".join(surfaces),
        base=base,
    )


@cache
def encoded(mounted: Mounted) -> bytes:
    """The page as it is served."""
    return text(mounted).encode()


def _section(name: str, operations: tuple[AnyOperation, ...], endpoint: str, token: str) -> str:
    tools = "\n".join(
        f"- `{tool.name}`: {tool.title}. {tool.description.partition('. ')[0].rstrip('.')}."
        for tool in operations
    )
    addresses = [_addresses(operation) for operation in operations]
    if name == "Records":
        routes = (*LISTINGS, BLOB)
        addresses += [f"- {operation.title}: `GET {operation.route.path}`" for operation in routes]
    over_mcp = f"POST JSON-RPC to `{endpoint}` (streamable HTTP, no session). {token}"
    rest = "\n".join(addresses)
    return f"## {name}\n\nMCP: {over_mcp}\n\nTools:\n\n{tools}\n\nOver REST:\n\n{rest}"


def _addresses(operation: AnyOperation) -> str:
    route = operation.route
    requests = [f"`GET {path}`" for path in (route.path, *route.variants)]
    requests += [f"`POST {route.path}`"] if route.posted else []
    such = f"for example `{_example(operation)}`"
    return f"- {operation.title}: {', '.join(requests)}, {such}"


def _example(operation: AnyOperation) -> str:
    args = operation.examples[0]
    if isinstance(operation, RecordOperation):
        return str(bodies.address(operation, args))
    return links.href(Continuation(operation.name, args, "example"))
