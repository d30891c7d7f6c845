"""MCP without a socket: bytes and headers in, a `Reply` out.

    server = Server(surface)
    handle(server, raw, headers, session) -> Reply                HTTP, one post
    handle_line(server, raw, session, dialogue) -> bytes | None   a pipe, one line

Neither raises for any bytes. `validation` determines the era of a message and checks it. The
messages of a batch share the deadline of their request; each counts as a request of its own.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson

from evidence import request_log
from evidence.errors import EvidenceError, Internal
from evidence.work import check, parse_json, pause, TooDeeplyNested, TooManyValues
from service.mcp import faults, validation, versions
from service.mcp.faults import Fault, invalid_request
from service.mcp.server import Server
from service.mcp.validation import Headers, Request

logger = logging.getLogger(__name__)

#: The name of a batch in the log, in place of a method or tool.
BATCH: Final = "batch"

Validate = Callable[[Any], Request | None]
#: Opens the session of a further message of a batch, and counts that message.
Again = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response. Without a body, the message needed no answer and the status is 202."""

    status: int
    body: bytes | None = None


ACCEPTED = Reply(202)


@dataclass(slots=True)
class Dialogue:
    """The state of one stdio connection: the negotiated revision."""

    version: str | None = None

    def validate(self, message: Any) -> Request | None:
        """The request in a line; modern if its body names a modern revision."""
        own = validation.claimed(message)
        if own is not None and own not in versions.LEGACY:
            return validation.modern(message, None)
        request = validation.legacy(message, own or self.version or versions.LEGACY[0], None)
        if request is not None and request.method == "initialize":
            requested = request.params.get("protocolVersion")
            if isinstance(requested, str):
                self.version = versions.negotiate(requested)
        return request


def handle(
    server: Server,
    raw: bytes,
    headers: Headers,
    session: Any,
    *,
    request_id: str = "",
    again: Again | None = None,
) -> Reply:
    """The answer to one HTTP POST. Lookups in `headers` ignore case."""
    try:
        message = parsed(raw)
        batched = (
            isinstance(message, list)
            and validation.header_version(headers) in versions.WITH_BATCHES
        )
    except Fault as fault:
        return refused(fault)
    if batched:
        return _answer_batch(server, message, session, again, request_id, headers)
    return _answer(
        server, message, session, request_id, partial(validation.posted, headers=headers)
    )


def handle_line(
    server: Server, raw: bytes, session: Any, dialogue: Dialogue, *, request_id: str = ""
) -> bytes | None:
    """The answer to one line from a pipe, without a newline, or None."""
    try:
        message = parsed(raw)
    except Fault as fault:
        return refused(fault).body
    if isinstance(message, list) and dialogue.version in (None, *versions.WITH_BATCHES):
        return _answer_batch(server, message, session, None, request_id, None).body
    return _answer(server, message, session, request_id, dialogue.validate).body


def parsed(raw: bytes) -> Any:
    """The message in `raw`. NaN, lone surrogates and deep nesting are not JSON here."""
    try:
        return parse_json(raw)
    except (TooManyValues, TooDeeplyNested) as error:
        message = f"The body {error}. Send a smaller, less nested body."
        raise Fault(faults.PARSE_ERROR, message, status=400) from None
    except orjson.JSONDecodeError as error:
        message = f"The body is not valid UTF-8 JSON: {error}."
        raise Fault(faults.PARSE_ERROR, message, status=400) from None


def refused(fault: Fault, id: str | int | None = None) -> Reply:
    """A fault as a reply. The id is null if the request had none."""
    request_log.current().error = fault.log_code
    return Reply(fault.status, orjson.dumps(fault.body(id)))


def _answer(
    server: Server, message: Any, session: Any, request_id: str, validate: Validate
) -> Reply:
    """The reply to one message: a result, a fault, or nothing for a notification."""
    try:
        request = validate(message)
        if request is None:
            return ACCEPTED
        result = server.answer(request, session)
        body = {"jsonrpc": "2.0", "id": request.id, "result": result}
        return Reply(200, orjson.dumps(body))
    except Fault as fault:
        return refused(fault, _readable_id(message))
    except Exception:
        logger.exception("request %s failed", request_id)
        failed = faults.of_error(Internal(), faults.INTERNAL_ERROR, request_id=request_id)
        return refused(failed, _readable_id(message))


class RefusedSession:
    """The session of a message that is over a limit: raises the error when it is used."""

    def __init__(self, error: EvidenceError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


def _reopened(again: Again) -> Any:
    """The session of a further message of a batch."""
    try:
        pause()
        check("answering earlier messages of the batch")
        return again()
    except EvidenceError as error:
        return RefusedSession(error)


def _answer_batch(
    server: Server,
    messages: list[Any],
    session: Any,
    again: Again | None,
    request_id: str,
    headers: Headers | None,
) -> Reply:
    """The replies to a batch, as one array; 202 if it has only notifications."""
    if not messages:
        return refused(invalid_request("A batch must have at least one message."))
    if len(messages) > server.batch_messages:
        limit = server.batch_messages
        return refused(
            invalid_request(f"A batch can have at most {limit} messages. Send several batches.")
        )

    def validate(message: Any) -> Request | None:
        request = validation.legacy(message, versions.ASSUMED_VERSION, headers)
        if request is not None and request.method == "initialize":
            raise invalid_request("`initialize` cannot be in a batch. Send it alone.")
        return request

    reopen = again or (lambda: session)
    replies = [
        _answer(server, message, _reopened(reopen) if number else session, request_id, validate)
        for number, message in enumerate(messages)
    ]
    request_log.current().operation = BATCH
    bodies = [reply.body for reply in replies if reply.body is not None]
    return Reply(200, b"[" + b",".join(bodies) + b"]") if bodies else ACCEPTED


def _readable_id(message: Any) -> str | int | None:
    """The id to repeat in the answer; None if the message has no valid one."""
    id = message.get("id") if isinstance(message, dict) and "method" in message else None
    return id if isinstance(id, (str, int)) and not isinstance(id, bool) else None
