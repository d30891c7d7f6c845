"""Converts an upstream's refusals to our errors, with its codes verbatim and its text limited.

Bodies come in the form of PDPP, of OAuth, as a bare object, or as the text of a proxy.
"""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from html import unescape
from typing import Any

import orjson

from evidence import errors
from evidence.model import Continuation, known
from evidence.errors import EvidenceError
from evidence.limits import BUDGETS, CONTRACT
from evidence.text import escape
from evidence.work import TooDeeplyNested, TooManyValues, parse_json
from service.pdpp.decode import short, text_of
from service.sources.remote.outbound import Answer
from service.statuses import STATUS

Headers = Mapping[str, str]

#: Statuses below 500 without a kind mean an invalid request, the others an unavailable server.
KINDS: dict[int, type[EvidenceError]] = {
    408: errors.TimedOut,
    **{STATUS[kind.kind]: kind for kind in errors.KINDS if kind is not errors.Internal},
}
#: 401 codes that mean a dead token; other `context.*` codes mean: not granted.
DEAD_TOKEN = ("context.active_false", "context.expired")
NOT_GRANTED: dict[str, type[EvidenceError]] = {"context.instance_mismatch": errors.NotFound}
#: The upstream names of arguments that have another name here.
ARGUMENTS = {"q": "query", "expand[]": "expand", "streams[]": "streams"}
#: Arguments that an error may name; operations have no others.
RETRIES = ("connection_id", "stream", "streams")
CONNECTION_KEYS = ("connection_id", "connector_key", "grant_id", "display_name", "stream")
TEXTS = ("param", "field")
OPERATIONS = ("schema", "query_records", "aggregate", "search", "fetch", "read_record_field")

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>`)\]}]+", re.IGNORECASE)
_PAGE_TITLE = re.compile(rb"<title[^>]*>([^<]{1,1000})", re.IGNORECASE)
_CODE = re.compile(r"[\w.:-]{1,100}")


def failure(answer: Answer) -> EvidenceError:
    """The error for an answer with a status other than 200."""
    body = _error_object(answer.body)
    code = body.get("code")
    code = code if isinstance(code, str) and _CODE.fullmatch(code) else None
    kind = _kind(answer.status, code)
    message = _text(body.get("message")) or _words_for(answer.status, code)
    retry, guidance = _retry_with(body.get("retry_with"))
    hint = _text(body.get("hint")) or guidance or _hint(kind, code, message)
    error = kind(
        message,
        code=code or (f"http_{answer.status}" if kind is not errors.Unavailable else None),
        hint=hint,
        retry_with=retry,
        calls=_calls(body.get("next")),
        retry_after=retry_seconds(answer.headers),
        **_details(body),
    )
    return noted(error, answer)


def noted(error: EvidenceError, answer: Answer) -> EvidenceError:
    """The error with a note for the operator about the proxy's error page."""
    if title := _PAGE_TITLE.search(answer.body[: BUDGETS.error_page_bytes]):
        page_title = _text(unescape(title[1].decode("utf-8", "replace")))
        error.add_note(f"It returned status {answer.status} and a web page: {page_title}")
    return error


def invalid(why: str) -> errors.Unavailable:
    """The error for an answer that does not fit the request."""
    return errors.Unavailable(
        f"An upstream server {why}. Its operator has to fix this. Try again later.",
        code="upstream_invalid_response",
    )


def unbounded(error: TooManyValues | TooDeeplyNested) -> EvidenceError:
    """The error for JSON that is not parsed because it has too many values or levels."""
    if isinstance(error, TooManyValues):
        return errors.TooLarge(
            f"An upstream server returned JSON that {error}. Request less data.",
            code="upstream_too_large",
        )
    refusal = invalid(f"returned JSON that {error}")
    refusal.hint = "Request only the fields you need, without the nested field."
    return refusal


def retry_after(headers: Headers) -> float | None:
    """Seconds to wait, from `Retry-After`: a number, or a date relative to that of the answer.

    Both dates come from the same clock, so ours need not agree with it.
    """
    value = headers.get("Retry-After", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(min(int(value[:10]), 86_400))
    try:
        then = parsedate_to_datetime(value)
        now = parsedate_to_datetime(headers.get("Date", ""))
        return min(max(0.0, (then - now).total_seconds()), 86_400.0)
    except (ValueError, TypeError, OverflowError):
        return None


def retry_seconds(headers: Headers) -> int | None:
    """The same in whole seconds, for an error."""
    seconds = retry_after(headers)
    return None if seconds is None else math.ceil(seconds)


def _error_object(raw: bytes) -> dict[str, Any]:
    """`{code, message, …}` from a body; empty if its form is unknown."""
    try:
        body = parse_json(raw)
    except ValueError:
        return {}
    if not isinstance(body, dict):
        return {}
    inner = body.get("error")
    if isinstance(inner, dict):
        return inner
    if isinstance(inner, str) and "statusCode" not in body:
        return {"code": inner, "message": body.get("error_description")}
    return body


def _kind(status: int, code: str | None) -> type[EvidenceError]:
    if status == 401 and code and code.startswith("context.") and code not in DEAD_TOKEN:
        return NOT_GRANTED.get(code, errors.Forbidden)
    if status == 403 and code in errors.ENDED:
        return errors.Unauthenticated
    return KINDS.get(status, errors.InvalidRequest if 400 < status < 500 else errors.Unavailable)


def _words_for(status: int, code: str | None) -> str:
    if code:
        return (
            f"An upstream server refused the request with {code}. Change the call, or try again "
            "later."
        )
    if status == 404:
        return "An upstream server did not find what you requested. Check the ids and names."
    return f"An upstream server returned status {status}. Try again later."


def _hint(kind: type[EvidenceError], code: str | None, message: str) -> str | None:
    if code and code.startswith("context.") and kind is not errors.Unauthenticated:
        return "Your token's grant does not include this. Call schema {} to see what it includes."
    if kind is errors.Unauthenticated and "Ask the owner" not in message:  # our own hint is clearer
        return "The token is no longer valid. Ask the owner for a new one."
    return None


def _retry_with(value: Any) -> tuple[str | None, str | None]:
    """(argument, guidance), from a plain name or from `{field, guidance}`; known names only."""
    if isinstance(value, dict):
        return _retry_with(value.get("field"))[0], _text(value.get("guidance"))
    argument = ARGUMENTS.get(value, value) if isinstance(value, str) else None
    return (argument, None) if argument in RETRIES else (None, None)


def _details(body: dict[str, Any]) -> dict[str, Any]:
    """The details that our own errors have, limited in size; all others are left out."""
    details: dict[str, Any] = {}
    for name in TEXTS:
        if text := _text(body.get(name)):
            details[name] = ARGUMENTS.get(text, text)
    entries = body.get("available_connections")
    if isinstance(entries, list):
        connections = [_connection(entry) for entry in entries[: CONTRACT.candidates]]
        details["available_connections"] = [row for row in connections if "connection_id" in row]
        counted = body.get("available_connection_count")
        total = counted if isinstance(counted, int) and counted > len(entries) else len(entries)
        if counted is not None or total > len(connections):
            details["available_connection_count"] = total
    near = body.get("did_you_mean")
    if isinstance(near, list):
        words = [text for entry in near[: BUDGETS.upstream_suggestions] if (text := _text(entry))]
        details["did_you_mean"] = words or None
    arguments = body.get("retry_arguments")
    if isinstance(arguments, dict) and is_small(arguments):
        details["retry_arguments"] = arguments
    return details


def _connection(row: Any) -> dict[str, str]:
    labels = {name: short(text_of(row, name), CONTRACT.name_chars) for name in CONNECTION_KEYS}
    return known(labels)


def _calls(calls: Any) -> tuple[Continuation, ...]:
    """Alternative calls, if the upstream is a Rung and names some."""
    entries = calls if isinstance(calls, list) else []
    return tuple(
        Continuation(call["tool"], call["args"], call["why"])
        for call in entries[: BUDGETS.retries_shown]
        if isinstance(call, dict)
        and call.get("tool") in OPERATIONS
        and isinstance(call.get("args"), dict)
        and is_small(call["args"])
        and isinstance(call.get("why"), str)
        and re.fullmatch("[a-z_]{1,40}", call["why"])
    )


def is_small(value: Any) -> bool:
    """True if a detail of an upstream is small enough to be passed on."""
    return len(orjson.dumps(value)) <= BUDGETS.upstream_detail_bytes


def _text(value: Any) -> str | None:
    """Text from an upstream: one short line without addresses and hidden characters."""
    if not isinstance(value, str):
        return None
    plain = " ".join(value[: 4 * BUDGETS.upstream_message_chars].split())
    escaped = escape(_ADDRESS.sub("(address)", plain))[0]
    return short(escaped, BUDGETS.upstream_message_chars) or None
