"""The operation type: declared once, exposed as a tool, a REST route and a command."""

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from marshmallow import RAISE, Schema, ValidationError

from evidence import handles
from evidence.model import Continuation
from evidence.errors import EvidenceError, InvalidRequest
from evidence.limits import BUDGETS, Budgets
from evidence.text import json_line
from evidence.work import Each, serial
from renderers.rendering import Context, Rendering
from service.operations import complaints
from service.operations.arguments import ADDED_BY_HOSTS, normalized, over_rest
from service.operations.json_schema import tool_schema
from service.ports import Answer, PaperLibrary, ResourceServer


class Arguments(Schema):
    """Arguments of an operation: unknown names are refused, null means absent."""

    class Meta:
        unknown = RAISE


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
    """The REST route of an operation, and its names there.

    `names` are REST names of arguments; `defaults` apply only over REST; `extra` are parameters
    that only REST has, as marshmallow fields; `needs` are arguments that only REST requires; `link`
    adds addresses to the body. `variants` are further paths of the same operation, each with its
    fixed arguments. `posted` routes also accept their arguments as the JSON body of a POST, in case
    they are too long for a URL. `clamped` arguments are lowered to their maximum instead of
    refused. `synonyms` are values of an argument that only REST accepts, each with its equivalent.
    """

    path: str
    names: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    link: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    posted: bool = False
    clamped: tuple[str, ...] = ()
    synonyms: dict[str, dict[str, str]] = field(default_factory=dict)

    def spelled(self, name: str) -> str:
        """The REST name of an argument."""
        return self.names.get(name, name)


def names_in(path: str) -> list[str]:
    """The names of the parameters of a path."""
    return re.findall("<([a-z_]+)>", path)


@dataclass(frozen=True, kw_only=True)
class BaseOperation:
    """A request that is available over REST alone, or as an operation of a surface.

    `rewrite` replaces undeclared names, which callers of PDPP tools send, with the declared ones;
    `undeclared` are further arguments.
    """

    name: str
    title: str
    description: str
    arguments: Schema
    route: Route
    examples: tuple[dict[str, Any], ...] = ({},)
    rewrite: Callable[[dict[str, Any]], dict[str, Any]] = dict
    undeclared: dict[str, Any] = field(default_factory=dict)

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
        further = {name: present.pop(name) for name in self.undeclared.keys() & present.keys()}
        try:
            loaded: dict[str, Any] = self.arguments.load(present)
        except ValidationError as error:
            messages = error.normalized_messages()  # type: ignore[no-untyped-call]
            declared = self.arguments.fields
            raise complaints.refusal(
                self.name, declared, messages, names, describe or self._describe
            ) from error
        for name, value in further.items():
            loaded[name] = complaints.checked(name, self.undeclared[name], value)
        return loaded

    def named(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Unchecked arguments by declared name, without nulls."""
        return self.rewrite({name: entry for name, entry in raw.items() if entry is not None})

    def understood(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Unchecked arguments of a tool call, as hosts and models that write them loosely mean."""
        own = {name: argument for name, argument in raw.items() if name not in ADDED_BY_HOSTS}
        declared = self.arguments.fields
        return normalized(self.named(normalized(own, declared)), declared)

    def load_rest(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The same for REST: its names, its defaults, and the arguments its route requires."""
        route = self.route
        loaded = self.load(raw, route.names, self._describe_rest)
        for name in route.needs:
            if name not in loaded:
                rest_name = route.spelled(name)
                hint = f"{rest_name}: {self._describe_rest(name)}"
                raise InvalidRequest(f"{self.name} needs {rest_name}.", param=rest_name, hint=hint)
        return loaded

    def _describe(self, name: str) -> str:
        return str(self.arguments.fields[name].metadata["description"])

    def _describe_rest(self, name: str) -> str:
        return over_rest(self.arguments.fields[name], self.route.defaults.get(name))

    def queried(self, path: str, fixed: Collection[str] = ()) -> dict[str, str]:
        """{REST name: name} of the arguments in the query string of a path.

        `fixed` are those implied by the path.
        """
        bound = {*names_in(path), *fixed}
        bound |= {"id"} if "record_id" in bound else set()
        names = (name for name in self.arguments.fields if name not in bound)
        return {self.route.spelled(name): name for name in names}


@dataclass(frozen=True, kw_only=True)
class Operation(BaseOperation):
    """One operation of a surface.

    `run` returns a result, `render` both of its channels. `fit` returns a result within its
    budget, with fewer items if necessary; its third argument renders the items of heavy pages.
    """

    run: Callable[..., Any]
    render: Callable[[Any, Context], Rendering]
    fit: Callable[[Any, Budgets, Each], Any] = lambda result, budgets, each: result

    @property
    def tool_description(self) -> str:
        """The description for tools/list."""
        return self.description

    @cached_property
    def tool(self) -> dict[str, Any]:
        """The tools/list entry."""
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
        }


@dataclass(frozen=True, kw_only=True)
class RecordOperation(Operation):
    """An operation on records. `ask` returns the source's answer, for REST; `run` its value."""

    ask: Callable[..., Answer[Any]]


def ask_of(method: str, query: Callable[..., Any]) -> Callable[..., Answer[Any]]:
    """An `ask` that calls a method of the source with `query(**arguments)`."""

    def ask(session: Session, **args: Any) -> Answer[Any]:
        answer: Answer[Any] = getattr(session.rs, method)(query(**args))
        return answer

    return ask


def run_of(ask: Callable[..., Answer[Any]], **fixed: Any) -> Callable[..., Any]:
    """A `run` whose result is the value of an answer with the arguments that asked for it.

    `fixed` are arguments of the port that callers cannot set.
    """

    def run(session: Session, **args: Any) -> Any:
        return replace(ask(session, **args, **fixed).value, args=args)

    return run


@dataclass(frozen=True, kw_only=True)
class PaperOperation(Operation):
    """An operation on papers."""

    @property
    def tool_description(self) -> str:
        """The description with an example, because not all vendors support one in schemas."""
        example = {**self.examples[0]}
        if "paper_id" in example:  # no paper exists in every library
            example["paper_id"] = "paper_id of a hit"
        return f"{self.description} Example: {json_line(example)}"


def retries(
    error: EvidenceError, operation: Operation, raw: dict[str, Any]
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
    operation: Operation, session: Caller, args: dict[str, Any], budgets: Budgets = BUDGETS
) -> Any:
    """Returns the result; asks again for a smaller page if the first exceeds its budget."""
    result = operation.run(session, **args)
    fitted = operation.fit(result, budgets, session.each)
    while _size(fitted) < _size(result):
        # What a page says of its early end takes room too.
        shorter = _size(operation.fit(replace(result, ended_early=True), budgets, session.each))
        result = operation.run(session, **{**args, "limit": shorter})
        # The next page uses the caller's arguments.
        result = replace(result, ended_early=True, args=args)
        fitted = operation.fit(result, budgets, session.each)
    return fitted


def _size(result: Any) -> int:
    """The number of items on a page; only pages are requested twice."""
    lists = (getattr(result, name, None) for name in ("hits", "records", "groups", "values"))
    items: Sized = next((page for page in lists if page), ())
    return len(items)
