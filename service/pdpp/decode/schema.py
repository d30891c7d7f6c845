"""The schema envelope -> `SchemaIndex`: one row per distinct description of a stream."""

from typing import Any, NamedTuple

from evidence.envelope import Envelope
from evidence.model import SchemaIndex, Source, StreamRow
from service.pdpp.decode import rows, text_of, warnings_of


class Connector(NamedTuple):
    """One connector, by every name it has, and the ids of its connections."""

    names: frozenset[str]
    connections: tuple[str, ...]


def read(envelope: Envelope, *, args: dict[str, Any]) -> SchemaIndex:
    """The rows of a schema document, in the order the upstream gave."""
    body = envelope.body
    inner = body.get("data")
    if isinstance(inner, dict) and "connectors" not in body:
        body = inner
    found = [row for connector in rows(body, "connectors") for row in _streams(connector)]
    if not found:
        found = [_row(stream, None, []) for stream in rows(body, "streams")]
    return SchemaIndex(
        args=args,
        rows=[row for row in found if row.name],
        detail=text_of(args, "detail") or "compact",
        warnings=warnings_of(body),
        envelope=body,
    )


def connectors(envelope: Envelope) -> list[Connector]:
    """The connectors of a schema document, with the ids of their connections."""
    body = envelope.body
    inner = body.get("data")
    return [
        _connector(each) for each in rows(inner if isinstance(inner, dict) else body, "connectors")
    ]


def _connector(body: dict[str, Any]) -> Connector:
    names = (text_of(body, "connector_key"), text_of(body, "connector_id"))
    found = (source.connection_id for row in _streams(body) for source in row.connections)
    return Connector(
        frozenset(name for name in (*names, text_of(body.get("source"), "id")) if name),
        tuple(dict.fromkeys(one for one in found if one)),
    )


def _streams(connector: dict[str, Any]) -> list[StreamRow]:
    key = text_of(connector, "connector_key", "connector_id")
    shared = rows(connector, "granted_connections")
    return [_row(stream, key, shared) for stream in rows(connector, "streams")]


def _row(stream: dict[str, Any], key: str | None, shared: list[dict[str, Any]]) -> StreamRow:
    key = text_of(stream, "connector_key", "connector_id") or key
    listed = rows(stream, "granted_connections") or shared
    if not listed and text_of(stream, "connection_id"):
        listed = [stream]
    connections = [
        Source(text_of(one, "connection_id"), key, text_of(one, "display_name")) for one in listed
    ]
    keys = stream.get("primary_key")
    return StreamRow(
        name=text_of(stream, "name") or "",
        connector_key=key,
        label=text_of(stream, "label", "display_name"),
        connections=connections,
        fields=_fields(stream.get("field_capabilities")),
        relations=[r for r in rows(stream, "expand_capabilities") if r.get("usable") is not False],
        views=rows(stream, "views"),
        primary_key=keys if isinstance(keys, list) else [],
        cursor_field=text_of(stream, "cursor_field"),
        envelope=stream,
    )


def _fields(found: Any) -> dict[str, str]:
    """Capability flags by field, from flag strings, objects, or a list of objects."""
    if isinstance(found, list):
        found = {text_of(one, "name", "field", "path") or "": one for one in found}
    if not isinstance(found, dict):
        return {}
    return {
        name: flags if isinstance(flags, str) else _flags(flags)
        for name, flags in found.items()
        if name and (not isinstance(flags, dict) or flags.get("granted") is not False)
    }


def _flags(capabilities: Any) -> str:
    """The compact flags of a full capability object."""
    if not isinstance(capabilities, dict):
        return "declared"
    flags = []
    schema = capabilities.get("schema")
    word = text_of(capabilities, "type") or text_of(schema, "format", "type")
    if word:
        flags.append(f"t={word}")
    if role := text_of(capabilities, "role"):
        flags.append(f"role={role}")
    if _usable(capabilities, "exact_filter"):
        flags.append("eq")
    if _usable(capabilities, "range_filter"):
        operators = capabilities["range_filter"].get("operators") or []
        flags.append("r=" + "|".join(map(str, operators)))
    if _usable(capabilities, "lexical_search"):
        flags.append("lex")
    offered = capabilities.get("aggregation")
    kinds = (
        [name for name in offered if _usable(offered, name)] if isinstance(offered, dict) else []
    )
    if kinds:
        flags.append("a=" + "|".join(sorted(kinds)))
    return ",".join(flags) or "declared"


def _usable(capabilities: dict[str, Any], name: str) -> bool:
    found = capabilities.get(name)
    return isinstance(found, dict) and found.get("usable") is True
