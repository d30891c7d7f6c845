"""The operation type: declared once, exposed as a tool, a REST route and a command."""

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sized
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar, cast

from marshmallow import Schema, ValidationError
from marshmallow.fields import Field

from evidence import handles
from evidence.cached import cached_property
from evidence.model import Continuation
from evidence.errors import EvidenceError, InvalidRequest
from evidence.limits import BUDGETS, Budgets
from evidence.text import json_line
from evidence.work import Each, serial
from renderers.rendering import Context, Rendering
from service.operations import complaints
from service.operations.arguments import ADDED_BY_HOSTS, normalized, over_rest
from service.operations.json_schema import tool_schema
from service.ports import Answer, ResourceServer
from service.ports.papers import PaperLibrary
from service.ports.request import Request

#: In a tool's `_meta`: up to this many characters, Claude Code shows a result and writes no file.
SIZE_HINT: Final = "anthropic/maxResultSizeChars"

R = TypeVar("R", bound=Request)
S = TypeVar("S", bound="Session | PaperSession")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """One caller of the records surface: the resource server inside its grant.

    `each` processes the items of heavy pages. `address` is that of the server, even if it has no
    public URL: ids may be addresses below it.
    """

    rs: ResourceServer
    base_url: str = ""
    fence_key: bytes = b""
    each: Each = serial
    address: str = ""

    @property
    def version(self) -> Hashable | None:
        """The version of the data, if the source has one; its answers can then be cached."""
        version = getattr(self.rs, "version", None)
        return None if version is None else version()

    @property
    def is_local(self) -> bool:
        """Whether a read asks no other server."""
        return hasattr(self.rs, "version")


@dataclass(frozen=True, slots=True)
class PaperSession:
    """One caller of the papers surface; all its reads see the same generation of the snapshot."""

    papers: PaperLibrary
    base_url: str = ""
    each: Each = serial

    @property
    def fence_key(self) -> bytes:
        return self.papers.fence_key


Caller = Session | PaperSession


@dataclass(frozen=True, slots=True)
class Route:
    """The REST route of an operation.

    `extra` are parameters that only REST has and the request does not, as marshmallow fields;
    `meaning` converts them to arguments of the request. `link` adds addresses to the body.
    `variants` are further paths of the same operation, each with its fixed arguments. `posted`
    routes also accept their arguments as the JSON body of a POST, in case they are too long for a
    URL.
    """

    path: str
    extra: dict[str, Field[Any]] = field(default_factory=dict)
    meaning: Callable[[dict[str, Any]], dict[str, Any]] = dict
    link: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    posted: bool = False


def names_in(path: str) -> list[str]:
    """The names of the parameters of a path."""
    return re.findall("<([a-z_]+)>", path)


@dataclass(frozen=True, kw_only=True)
class BaseOperation(Generic[R]):
    """A request that is available over REST alone, or as an operation of a surface.

    `rewrite` replaces undeclared names, which callers of PDPP tools send, with the declared ones.
    """

    request: type[R]
    title: str
    description: str
    route: Route
    examples: tuple[dict[str, Any], ...] = ({},)
    rewrite: Callable[[dict[str, Any]], dict[str, Any]] = dict

    @property
    def name(self) -> str:
        return self.request.operation

    @property
    def arguments(self) -> Schema:
        """The arguments that every surface has."""
        return self.request.arguments

    @cached_property
    def rest_names(self) -> dict[str, str]:
        """{name: REST name} of the arguments whose names differ."""
        return self.request.marked("rest_name")

    @cached_property
    def rest_defaults(self) -> dict[str, Any]:
        """The values of arguments over REST, unless a caller sets them."""
        return self.request.marked("rest_default")

    @cached_property
    def extra(self) -> dict[str, Field[Any]]:
        """The parameters that only REST has."""
        return {**self.request.rest_only, **self.route.extra}

    def rest_name(self, name: str) -> str:
        """The REST name of an argument."""
        return self.rest_names.get(name, name)

    def load(
        self,
        raw: dict[str, Any],
        names: Mapping[str, str] = MappingProxyType({}),
        describe: Callable[[str], str] | None = None,
    ) -> dict[str, Any]:
        """The validated arguments; raises `InvalidRequest` with all that is wrong and its fix.

        `names` are the names of the arguments on the caller's surface, `describe` returns its
        description of one.
        """
        present = self.named(raw)
        accepted = self.request.marked("accepted").keys() & present.keys()
        further = {name: present.pop(name) for name in accepted}
        try:
            loaded: dict[str, Any] = self.arguments.load(present)
        except ValidationError as error:
            messages = error.normalized_messages()  # type: ignore[no-untyped-call]
            declared = self.arguments.fields
            raise complaints.refusal(
                self.name, declared, messages, names, describe or self._describe
            ) from error
        return self.request.settled(loaded) | self.checked(further)

    def checked(self, further: Mapping[str, Any]) -> dict[str, Any]:
        """The values of parameters that only REST has; raises `InvalidRequest` for the first."""
        return {
            name: complaints.checked(name, kind, further[name])
            for name, kind in self.extra.items()
            if name in further
        }

    def named(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Unchecked arguments by declared name, without nulls."""
        return self.rewrite({name: entry for name, entry in raw.items() if entry is not None})

    def understood(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Unchecked arguments of a tool call, as hosts and models that write them loosely mean."""
        own = {name: argument for name, argument in raw.items() if name not in ADDED_BY_HOSTS}
        declared = self.arguments.fields
        return normalized(self.named(normalized(own, declared)), declared)

    def load_rest(
        self, raw: dict[str, Any], extra: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, Any]:
        """The same for REST: its names, the arguments it requires, and `extra` parameters."""
        loaded = self.load(raw, self.rest_names, self._describe_rest)
        for name in self.request.marked("rest_required"):
            if name not in loaded:
                rest_name = self.rest_name(name)
                hint = f"{rest_name}: {self._describe_rest(name)}"
                raise InvalidRequest(f"{self.name} needs {rest_name}.", param=rest_name, hint=hint)
        return self.route.meaning(loaded | self.checked(extra))

    def over_rest(self, loaded: dict[str, Any]) -> R:
        """The request with arguments that REST loaded."""
        return self.request.of(loaded, self.request.marked("rest_value"))

    def _describe(self, name: str) -> str:
        return str(self.arguments.fields[name].metadata["description"])

    def _describe_rest(self, name: str) -> str:
        return over_rest(self.arguments.fields[name], self.rest_defaults.get(name))

    def queried(self, path: str, fixed: Collection[str] = ()) -> dict[str, str]:
        """{REST name: name} of the arguments in the query string of a path.

        `fixed` are those implied by the path.
        """
        bound = {*names_in(path), *fixed}
        bound |= {"id"} if "record_id" in bound else set()
        names = (name for name in self.arguments.fields if name not in bound)
        return {self.rest_name(name): name for name in names}


@dataclass(frozen=True, kw_only=True)
class Operation(BaseOperation[R], Generic[S, R, T]):
    """One operation of a surface.

    `run` returns the result for a session, `render` both of its channels. `fit` returns a result
    within its budget, with fewer items if necessary; its third argument renders the items of heavy
    pages.
    """

    run: Callable[[S, R], T]
    render: Callable[[T, Context], Rendering]
    fit: Callable[[T, Budgets, Each], T] = lambda result, budgets, each: result
    #: The longest answer, of a tool that may exceed what hosts show by default.
    answer_chars: int | None = None

    def answer(self, session: S, loaded: dict[str, Any]) -> T:
        """The result for valid arguments, as tools ask for it."""
        return self.run(session, self.request.of(loaded, self.request.marked("tool_value")))

    @property
    def tool_description(self) -> str:
        """The description for tools/list."""
        return self.description

    @cached_property
    def tool(self) -> dict[str, Any]:
        """The tools/list entry."""
        hint = {"_meta": {SIZE_HINT: self.answer_chars}} if self.answer_chars else {}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.tool_description,
            "inputSchema": tool_schema(self.arguments),
            "annotations": {
                "title": self.title,
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
            **hint,
        }


AnyOperation = Operation[Any, Any, Any]


@dataclass(frozen=True, kw_only=True)
class RecordOperation(Operation[Session, R, T]):
    """An operation on records. `ask` returns the source's answer, for REST."""

    ask: Callable[[Session, R], Answer[Any]]


@dataclass(frozen=True, kw_only=True)
class PaperOperation(Operation[PaperSession, R, T]):
    """An operation on papers."""

    @property
    def tool_description(self) -> str:
        """The description with an example, because not all vendors support one in schemas."""
        example = {**self.examples[0]}
        if "paper_id" in example:  # no paper exists in every library
            example["paper_id"] = "paper_id of a hit"
        return f"{self.description} Example: {json_line(example)}"


def retries(
    error: EvidenceError, operation: AnyOperation, raw: dict[str, Any]
) -> tuple[Continuation, ...]:
    """The same call, with an argument, connection or paper that the error suggests."""
    changes = [error.details["retry_arguments"]] if "retry_arguments" in error.details else []
    if error.retry_with == "connection_id" and not _names_connection(raw):
        entries = error.details.get("available_connections", ())
        changes += [
            {"connection_id": entry["connection_id"]} for entry in entries[: BUDGETS.retries_shown]
        ]
    if "paper_id" in raw:
        papers = error.details.get("candidates") or error.details.get("near") or ()
        changes += [{"paper_id": paper["paper_id"]} for paper in papers[: BUDGETS.retries_shown]]
    declared, raw = operation.arguments.fields, operation.named(raw)
    args = {name: arg for name, arg in raw.items() if name != "cursor"}  # fits only its own call
    return tuple(
        Continuation(operation.name, {**args, **change}, "retry")
        for change in changes
        if declared.keys() >= change.keys()
    )


def _names_connection(raw: Mapping[str, Any]) -> bool:
    """Whether the id of a valid call contains its connection, which no argument can replace."""
    return "id" in raw and handles.parse(raw["id"]).connection_id is not None


def run_bounded(
    operation: Operation[S, R, T], session: S, args: dict[str, Any], budgets: Budgets = BUDGETS
) -> T:
    """Returns the result; or, if it exceeds its budget, a smaller page, asked for if need be."""
    result: Any = operation.answer(session, args)
    fitted: Any = operation.fit(result, budgets, session.each)
    while (shorter := _size(fitted)) < _size(result):
        if first_hits := getattr(result, "first_hits", None):
            result = replace(first_hits(shorter), as_of=result.as_of)
        else:
            result = operation.answer(session, {**args, "limit": shorter})
        # The next page uses the caller's arguments.
        result = replace(result, ended_early=True, args=args)
        fitted = operation.fit(result, budgets, session.each)
    return cast(T, fitted)


def _size(result: Any) -> int:
    """The number of items on a page; only pages are shortened."""
    lists = (getattr(result, name, None) for name in ("hits", "records", "groups", "values"))
    items: Sized = next((page for page in lists if page), ())
    return len(items)
