"""The requests of a remote check, their responses, and what answers instead of the server."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson

from evidence.errors import EvidenceError, TimedOut, TooLarge
from evidence.limits import BUDGETS
from evidence.work import Deadline, parse_json
from service.doctor.findings import Finding, plain, problem
from service.mcp.validation import CAPABILITIES_KEY, TARGET_PARAMETERS, VERSION_HEADER, VERSION_KEY
from service.mcp.versions import LEGACY, MODERN
from service.sources.remote import outbound
from service.sources.remote.outbound import Answer, Cut

#: Stops at the next tag, so that a body with many unclosed titles takes no time.
TITLE = re.compile(rb"<title[^<>]*>([^<]*)<", re.IGNORECASE)
TITLE_CHARS = 80


@dataclass(frozen=True, slots=True)
class Reply(Answer):
    """One HTTP answer and its content."""

    @property
    def document(self) -> dict[str, Any] | None:
        """The JSON object of the body, if it is one."""
        try:
            document = parse_json(self.body)
        except ValueError:
            return None
        return document if isinstance(document, dict) else None

    @property
    def result(self) -> dict[str, Any] | None:
        """The result of a JSON-RPC answer."""
        result = (self.document or {}).get("result")
        return result if isinstance(result, dict) else None

    @property
    def error(self) -> dict[str, Any]:
        """The error of a JSON-RPC or REST answer, or {}."""
        error = (self.document or {}).get("error")
        return error if isinstance(error, dict) else {}

    @property
    def code(self) -> str | int | None:
        """The error code: the code of the underlying error, or else the number."""
        data = self.error.get("data")
        cause = data.get("code") if isinstance(data, dict) else None
        code = cause or self.error.get("code")
        return code if isinstance(code, (str, int)) else None

    @property
    def message(self) -> str:
        """The error message on one line."""
        return _line(str(self.error.get("message", "")))

    @property
    def is_page(self) -> bool:
        """True if this is an HTML page instead of JSON."""
        kind = self.headers.get("Content-Type", "")
        return self.document is None and ("html" in kind or TITLE.search(self.body) is not None)

    @property
    def speaker(self) -> str:
        """The sender named in the response: page title, Server or Via."""
        parts = []
        match = TITLE.search(self.body) if self.is_page else None
        if match:
            title = unescape(match[1].decode("utf-8", "replace"))
            parts.append(f'titled "{_line(title)[:TITLE_CHARS]}"')
        for name in ("Server", "Via"):
            if self.headers.get(name):
                parts.append(f"{name}: {_line(self.headers[name])[:TITLE_CHARS]}")
        return ", ".join(parts)

    @property
    def challenge(self) -> str:
        return self.headers.get("WWW-Authenticate", "")


def _line(text: str) -> str:
    """Text on one line."""
    return plain(" ".join(text.split()))


JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

#: An invalid bearer: every server that receives it refuses it.
NOBODY = "rung_doctor_is_only_looking"


class Stopped(Exception):
    """A request without a response; `finding` explains it."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass
class Route:
    """The shared state of the steps. `now` has a time zone."""

    url: str
    token: str | None = field(repr=False)
    now: datetime
    base: str = ""
    endpoint: str = ""
    proxy: str | None = None
    trusted: str = ""
    opened: Reply | None = None  # to a POST without a token
    tools: tuple[str, ...] = ()
    seconds: float = BUDGETS.doctor_seconds  # of each step
    deadline: Deadline = field(default_factory=lambda: Deadline.after(BUDGETS.doctor_seconds))

    @property
    def host(self) -> str:
        return urlsplit(self.base).hostname or ""

    @property
    def root(self) -> str:
        """The address without a path."""
        parts = urlsplit(self.base)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def plain(self) -> str:
        """The address without TLS."""
        return self.base.replace("https://", "http://", 1)

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    @property
    def is_open(self) -> bool:
        """True if the server answers without a token."""
        return self.opened is not None and self.opened.status == 200

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Reply:
        """The response with any status; raises `Stopped` without one."""
        try:
            answer = outbound.ask(
                method,
                url,
                deadline=self.deadline,
                most_bytes=BUDGETS.doctor_bytes,
                headers=headers,
                data=body,
                redirects=True,
            )
        except EvidenceError as error:
            raise Stopped(self._silence(error, method, url)) from None
        return Reply(answer.status, answer.headers, answer.body)

    def get(self, url: str) -> Reply:
        return self.ask("GET", url, {"Accept": "application/json"})

    def post(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> Reply:
        return self.ask("POST", self.endpoint, {**JSON, **headers}, orjson.dumps(message))

    def legacy(self, method: str, params: Mapping[str, Any]) -> Reply:
        """A request of the older revisions, with the token if there is one."""
        version = {VERSION_HEADER: LEGACY[0]} if method != "initialize" else {}
        return self.post(message(method, params), {**version, **self.bearer})

    def modern(self, method: str, params: Mapping[str, Any], revision: str = MODERN[0]) -> Reply:
        """A request of the newest revision, with all of its headers."""
        claims = {VERSION_KEY: revision, CAPABILITIES_KEY: {}}
        headers = {VERSION_HEADER: revision, "Mcp-Method": method, **self.bearer}
        if method in TARGET_PARAMETERS:
            headers["Mcp-Name"] = str(params[TARGET_PARAMETERS[method]])
        return self.post(message(method, {**params, "_meta": claims}), headers)

    def _silence(self, error: EvidenceError, method: str, url: str) -> Finding:
        request = f"{method} {urlsplit(url).path or '/'}"
        if isinstance(error, TimedOut):
            return problem("request-late", asked=request, seconds=self.seconds)
        if isinstance(error, TooLarge):
            return problem("answer-too-large", asked=request, most=BUDGETS.doctor_bytes)
        return problem("connection-closed" if isinstance(error, Cut) else "not-http", asked=request)


def message(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def foreign_answer(route: Route, reply: Reply, request: str) -> Finding | None:
    """The finding for an answer that is not Rung's; None if it may be Rung's.

    `request` is its method and path, such as "POST /mcp".
    """
    if 300 <= reply.status < 400:
        return _redirect(route, reply, request)
    if reply.status == 407:
        return problem("proxy-wants-credentials", route=route, asked=request)
    by = f" ({reply.speaker})" if reply.speaker else ""
    facts = {"asked": request, "status": reply.status, "by": by}
    if reply.status in (502, 503, 504) and reply.document is None:
        return problem("gateway-fails", **facts)
    if reply.is_page and "Bearer" not in reply.challenge and reply.status in (200, 401, 403):
        return problem("page-instead", route=route, **facts)
    return None


def _redirect(route: Route, reply: Reply, request: str) -> Finding:
    target = urljoin(route.endpoint, reply.headers.get("Location", ""))
    actual, expected = urlsplit(target), urlsplit(route.endpoint)
    schemes = (actual.scheme, expected.scheme)
    if schemes == ("https", "http") and actual.hostname == expected.hostname:
        name = "redirected-to-tls"
    elif actual.path.rstrip("/") == expected.path.rstrip("/") and actual.netloc == expected.netloc:
        name = "redirected-by-slash"
    else:
        name = "redirected-elsewhere"
    facts = {"asked": request, "status": reply.status, "there": actual}
    return problem(name, tls=route.base.replace("http://", "https://", 1), **facts)
