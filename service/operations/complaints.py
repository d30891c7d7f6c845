"""Errors about the arguments of a call."""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from marshmallow import ValidationError

from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS
from evidence.text import clip
from service.ports.types import Choice, Number


def refusal(
    operation: str,
    declared: Mapping[str, Any],
    messages: Mapping[str, Any],
    aliases: Mapping[str, str],
    describe: Callable[[str], str],
) -> InvalidRequest:
    """The error with all complaints in one sentence: unknown names, missing ones, invalid values.

    `messages` are those of marshmallow by name, `aliases` the names on the caller's surface.
    """
    # marshmallow lists them in no order
    unknown = sorted(messages.keys() - declared.keys())[: BUDGETS.names_shown]
    near = {name: get_close_matches(name, declared, n=1) for name in unknown}
    guesses = [guess for names in near.values() for guess in names]
    reasons = {name: _first(messages[name]) for name in declared if name in messages}
    absent = [n for n in reasons if reasons[n] == declared[n].error_messages["required"]]
    missing = [name for name in absent if name not in guesses]
    wrong = [name for name in reasons if name not in absent]
    complaints = [*_unknown(operation, near, declared)]
    if missing:
        complaints.append(f"{operation} needs {' and '.join(aliases.get(n, n) for n in missing)}")
    complaints += [f"{aliases.get(n, n)}: {reasons[n].removesuffix('.')}" for n in wrong]
    unclear = [n for n in reasons if n in missing or n in wrong and not _is_clear(declared[n])]
    first = [*unknown, *missing, *wrong][0]
    return InvalidRequest(
        f"{'; '.join(complaints)}.",
        code=getattr(declared.get(first), "error_code", None),
        param=clip(aliases.get(first, first), BUDGETS.label_chars),
        hint=" ".join(f"{aliases.get(n, n)}: {describe(n)}" for n in unclear) or None,
        did_you_mean=guesses or None,
    )


def _unknown(
    operation: str, near: Mapping[str, list[str]], declared: Mapping[str, Any]
) -> Iterator[str]:
    """The complaints about unknown names, with the nearest names of each."""
    clipped = {name: repr(clip(name, BUDGETS.label_chars)) for name in near}
    for name, guesses in near.items():
        if guesses:
            yield f"{operation} has no argument {clipped[name]} (did you mean {guesses[0]!r}?)"
    if strangers := ", ".join(clipped[name] for name in near if not near[name]):
        yield f"{operation} has no argument {strangers} (it accepts {', '.join(declared)})"


def checked(name: str, field: Any, raw: Any) -> Any:
    """The value of one parameter; raises an `InvalidRequest` that names it."""
    try:
        return field.deserialize(raw)
    except ValidationError as error:
        hint = None if _is_clear(field) else f"{name}: {field.metadata['description']}"
        raise InvalidRequest(f"{name}: {_first(error.messages)}", param=name, hint=hint) from error


def _is_clear(field: Any) -> bool:
    """True if the errors of an argument list its valid values."""
    return isinstance(field, (Choice, Number))


def _first(messages: Any) -> str:
    """The first message of a nested error."""
    while isinstance(messages, dict):
        messages = next(iter(messages.values()))
    return str(messages[0] if isinstance(messages, list) else messages)
