"""Checks record ids and the names of streams, fields and connections."""

from evidence.limits import CONTRACT

_FORBIDDEN_NAMES = frozenset({"", ".", ".."})


class Refused(ValueError):
    """A row or a name that the store refuses; the message explains why and what to do."""


def check_name(name: str, *, what: str) -> str:
    """Returns the name, if it may name a stream or a field."""
    return _checked(name, f"{what} name", CONTRACT.name_bytes, "rename it")


def check_connection_id(name: str) -> str:
    """Returns the name, if it may identify a connection."""
    if name in _FORBIDDEN_NAMES or "\0" in name or len(name) > CONTRACT.name_chars:
        raise Refused(
            f"{name[:40]!r} is not a valid connection id. Use 1 to {CONTRACT.name_chars} "
            "characters, without NUL. The ids '.' and '..' are not allowed."
        )
    return name


def check_record_id(key: str) -> str:
    """Returns the id, if it may identify a record."""
    return _checked(key, "record id", CONTRACT.record_id_bytes, "use another key")


def _checked(text: str, what: str, most: int, remedy: str) -> str:
    if text in _FORBIDDEN_NAMES or "\0" in text:
        raise Refused(f"{text!r} is not a valid {what}; {remedy}.")
    if len(text) * 4 > most and len(text.encode()) > most:
        raise Refused(f"The {what} {text[:40]!r}… is longer than {most} bytes; shorten it.")
    return text
