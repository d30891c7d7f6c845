"""One surface, ready to answer requests in every protocol revision.

Anything that cannot change between requests (discovery, the tools, the templates) is serialised
when a `Server` is built.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from evidence import request_log
from evidence.errors import EvidenceError
from evidence.limits import BUDGETS, CONTRACT
from evidence.work import parse_json
from service.mcp import faults, validation, versions
from service.mcp.answer_cache import AnswerCache
from service.mcp.faults import Fault, invalid_params, shortened
from service.mcp.surface import NEEDS_CAPABILITY, Surface, UnknownTool
from service.mcp.validation import Request

CAPABILITIES: Final[dict[str, Any]] = {"tools": {}, "resources": {}}
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"

#: How long clients may cache an answer: fixed lists, and resources of a public surface.
LIST_TTL_MS: Final = 3_600_000
READ_TTL_MS: Final = 300_000

Result = dict[str, Any] | orjson.Fragment
Method = Callable[[Request, Any], Result]


class Server:
    """One surface, ready to answer requests of every revision.

    `answers` caches answers; a batch may have `batch_messages`.
    """

    def __init__(
        self,
        surface: Surface,
        answers: AnswerCache | None = None,
        batch_messages: int = BUDGETS.batch_messages,
    ) -> None:
        self.surface, self.batch_messages = surface, batch_messages
        self._answers = answers
        info = {"name": surface.name, "title": surface.title, "version": surface.version}
        self._info = info
        self._meta = {SERVER_INFO: info}
        self._scope = "private" if surface.private else "public"
        self._mirrors = {
            tool["name"]: tuple(validation.mirrors(tool.get("inputSchema", {})))
            for tool in surface.tools
        }
        self._needs = {
            tool["name"]: tool["_meta"][NEEDS_CAPABILITY]
            for tool in surface.tools
            if NEEDS_CAPABILITY in tool.get("_meta", {})
        }
        shared: dict[str, Method] = {
            "tools/list": self._list("tools", surface.tools),
            "tools/call": self._call,
            "resources/list": self._resources,
            "resources/templates/list": self._list("resourceTemplates", surface.templates),
            "resources/read": self._read,
        }
        self._modern: dict[str, Method] = {"server/discover": self._discover(), **shared}
        self._legacy: dict[str, Method] = {
            "initialize": self._initialize,
            "ping": lambda request, session: {},
            **shared,
        }

    def answer(self, request: Request, session: Any) -> Result:
        """The result of one request. Raises `Fault` for protocol errors."""
        methods = self._modern if request.modern else self._legacy
        method = methods.get(request.method)
        _log_operation(request, supported=method is not None)
        if method is None:
            raise Fault(
                faults.METHOD_NOT_FOUND,
                f"Method {shortened(request.method)} does not exist in protocol version "
                f"{request.version}. Methods: {', '.join(methods)}.",
                status=404 if request.modern else 200,
            )
        try:
            return method(request, session)
        except EvidenceError as error:
            raise faults.of_error(error, faults.INTERNAL_ERROR) from error

    def _complete(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """A modern result, with its completion status and the server's name."""
        meta = {**result["_meta"], **self._meta} if result.get("_meta") else self._meta
        return {"resultType": "complete", **result, "_meta": meta}

    def _cacheable(self, result: Mapping[str, Any], ttl: int) -> dict[str, Any]:
        """A modern result that clients may keep for `ttl` milliseconds."""
        return self._complete({**result, "ttlMs": ttl, "cacheScope": self._scope})

    def _discover(self) -> Method:
        result = {
            "supportedVersions": list(versions.SUPPORTED),
            "capabilities": CAPABILITIES,
            "instructions": self.surface.instructions,
        }
        ready = orjson.Fragment(orjson.dumps(self._cacheable(result, LIST_TTL_MS)))
        return lambda request, session: ready

    def _list(self, key: str, entries: Any) -> Method:
        """A list that never changes, serialised once for each era."""
        result = {key: list(entries)}
        legacy = orjson.Fragment(orjson.dumps(result))
        modern = orjson.Fragment(orjson.dumps(self._cacheable(result, LIST_TTL_MS)))

        def ready(request: Request, session: Any) -> Result:
            refuse_cursor(request)
            return modern if request.modern else legacy

        return ready

    def _initialize(self, request: Request, session: Any) -> Result:
        requested = request.params.get("protocolVersion")
        if not isinstance(requested, str):
            raise invalid_params("`initialize` requires a string named `protocolVersion`.")
        return {
            "protocolVersion": versions.negotiate(requested),
            "capabilities": CAPABILITIES,
            "serverInfo": self._info,
            "instructions": self.surface.instructions,
        }

    def _call(self, request: Request, session: Any) -> Result:
        name, arguments = request.params.get("name"), called_with(request.params.get("arguments"))
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise invalid_params(
                "`tools/call` requires a string named `name`. `arguments` must be an object."
            )
        if request.modern:
            self._check_call(request, name, arguments)
        answers = self._answers
        again = answers.call(session, request.version, name, arguments) if answers else None
        cached = answers.find(again) if answers and again else None
        if cached is not None:
            request_log.current().operation = name
            return orjson.Fragment(cached)
        result = self._called(request, name, arguments, session)
        if not answers or not again or result.get("isError") or request_log.current().incomplete:
            return result
        ready = orjson.dumps(result)
        answers.keep(again, session, ready)
        return orjson.Fragment(ready)

    def _called(
        self, request: Request, name: str, arguments: dict[str, Any], session: Any
    ) -> dict[str, Any]:
        """The result of a tool call, in the format of the request's revision."""
        try:
            result = self.surface.call(name, arguments, session)
        except UnknownTool:
            names = [tool["name"] for tool in self.surface.tools]
            raise invalid_params(
                f"Unknown tool: {shortened(name)}. Tools: {', '.join(names)}.",
                tool=shortened(name),
                tools=names,
            ) from None
        request_log.current().operation = name
        if request.modern:
            return self._complete(result)
        return without_links(result) if request.version in versions.WITHOUT_LINKS else result

    def _check_call(self, request: Request, name: str, arguments: dict[str, Any]) -> None:
        """Refuses a modern call whose headers contradict it or whose client cannot follow it."""
        if request.headers is not None:
            validation.check_mirrors(request.headers, self._mirrors.get(name, ()), arguments)
        needed = self._needs.get(name)
        if needed is not None and needed not in request.capabilities:
            raise Fault(
                faults.MISSING_CAPABILITY,
                f"{name} works only with clients that declare the `{needed}` capability.",
                status=400,
                data={"requiredCapabilities": {needed: {}}},
            )

    def _resources(self, request: Request, session: Any) -> Result:
        refuse_cursor(request)
        result = {"resources": self.surface.resources(session)}
        return self._cacheable(result, self._read_ttl()) if request.modern else result

    def _read(self, request: Request, session: Any) -> Result:
        uri = request.params.get("uri")
        if not isinstance(uri, str):
            raise invalid_params("`resources/read` requires a string named `uri`.")
        if len(uri) > CONTRACT.handle_chars:
            raise invalid_params(f"`uri` is longer than {CONTRACT.handle_chars} characters.")
        try:
            result = {"contents": self.surface.read(uri, session)}
        except EvidenceError as error:
            code = faults.INVALID_PARAMS if request.modern else faults.RESOURCE_NOT_FOUND
            raise faults.of_error(error, code, uri=uri) from error
        return self._cacheable(result, self._read_ttl()) if request.modern else result

    def _read_ttl(self) -> int:
        return 0 if self.surface.private else READ_TTL_MS


def _log_operation(request: Request, *, supported: bool) -> None:
    """Records the operation and the trace context of the message."""
    log, meta = request_log.current(), request.params.get("_meta")
    log.operation = request.method if supported else request_log.UNKNOWN
    log.era = "modern" if request.modern else "legacy"
    if isinstance(meta, dict):
        log.join(meta.get("traceparent"))


def refuse_cursor(request: Request) -> None:
    """Refuses any cursor, because every list has a single page."""
    if request.params.get("cursor") is not None:
        raise invalid_params("This list has a single page. Leave out `cursor`.")


def called_with(arguments: Any) -> Any:
    """The arguments of a call, which some clients send as JSON text or as an empty list."""
    if isinstance(arguments, str) and arguments:
        try:
            arguments = parse_json(arguments.encode())
        except ValueError:
            return arguments
    return {} if arguments in (None, "", []) else arguments


def without_links(result: dict[str, Any]) -> dict[str, Any]:
    """The result with each `resource_link` as text, for clients that do not support them."""
    blocks = list(result.get("content", []))
    for number, block in enumerate(blocks):
        if block.get("type") == "resource_link":
            name = block.get("title") or block.get("name")
            words = filter(None, (name, block.get("description"), block["uri"]))
            blocks[number] = {"type": "text", "text": "\n".join(words)}
    return {**result, "content": blocks}
