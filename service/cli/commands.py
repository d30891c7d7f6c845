"""Operations as commands, for records and papers: options, next calls, errors and exit codes."""

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import click

from evidence import handles, wire
from evidence.model import Continuation
from evidence.errors import EvidenceError, InvalidRequest, TimedOut, Unavailable
from evidence.values import Base64, Bytes
from evidence.wire import bytes_line
from renderers import failure
from service.cli import output, words
from service.cli.source import NoToken
from service.operations.base import AnyOperation, retries
from service.ports import Late, Unreached
from service.settings import SettingsError
from service.statuses import STATUS, TYPES

FAILURE: Final = 1
USAGE: Final = 2

#: Exit codes by HTTP status; every other error is a plain failure.
CODES: Final = {400: USAGE, 401: 3, 403: 4, 404: 5}


#: Expressions in the texts of tools, and what they are in a shell.
IN_SHELL: Final = (
    (r"metadata\.next_read is the call for the rest", "the command for the rest is printed"),
    (
        r"\b([Aa]) truncated answer ends with the call for the rest",
        r"\1fter a truncated answer, the command for the rest is printed",
    ),
    (r"(?<=First )call\b", "run"),
    (r"\bCall\b", "Run"),
    (r"\bcall(s?)\b", r"command\1"),
)

#: Output formats other than the layout for a terminal.
FORMS: Final = {
    "plain": "Print the plain text that a pipe would get, even on a terminal.",
    "json": "Print the JSON body of the REST answer.",
    "jsonl": "Print one JSON object per line.",
    "csv": "Print CSV rows with a header.",
}


def form_options(forms: Mapping[str, str]) -> list[click.Option]:
    """An option for each of these output formats; they are passed with their help texts."""
    return [
        click.Option([f"--{name}", "form"], flag_value=name, default=None, help=text)
        for name, text in forms.items()
    ]


def exit_code(error: EvidenceError) -> int:
    """1 failure, 2 invalid call, 3 no valid token, 4 forbidden, 5 not found."""
    return CODES.get(STATUS[error.kind], FAILURE)


Op = TypeVar("Op", bound=AnyOperation)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Op]):
    """A command: its name, its operation, and the arguments that need no option name."""

    name: str
    operation: Op
    positional: tuple[str, ...] = ()
    joined: str | None = None  #: the positional argument that takes all remaining words
    last: str | None = None  #: an option whose value may also be the last word

    def params(self, reword: Callable[[str], str] = str) -> list[click.Parameter]:
        """The operation's arguments as click parameters; `reword` changes their help."""
        params: list[click.Parameter] = []
        fields = self.operation.arguments.fields
        for key in self.positional:
            many: dict[str, Any] = {"nargs": -1, "metavar": f"{key.upper()}..."}
            joined = many if key == self.joined else {}
            required = fields[key].required or key == self.joined
            params.append(click.Argument([key], required=required, **joined))
        for key in [name for name in fields if name not in self.positional]:
            name, help = words.option_name(key), reword(self.described(key))
            params.append(click.Option([name], help=help, **words.click_type(fields[key])))
        if self.last is not None:
            params.append(click.Argument([f"{self.last}_word"], required=False, metavar="[FIELD]"))
        return params

    def arguments_of(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The given arguments in declaration order, unchecked."""
        arguments = {}
        for key, field in self.operation.arguments.fields.items():
            option = options.get(key)
            if key == self.last and (word := options.get(f"{key}_word")) is not None:
                if option not in (None, word):
                    raise InvalidRequest(f"Give {word!r} or {words.option_name(key)}, not both.")
                option = word
            option = " ".join(option) if key == self.joined and option else option
            value = words.value(key, field, option)
            if value is not None:
                arguments[key] = value
        return arguments

    def load(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The validated arguments; raises `InvalidRequest` with the option names."""
        return self.operation.load(arguments, self.option_names, self.described)

    def described(self, name: str) -> str:
        """The help text of an argument, with its valid values and the options it mentions."""
        shape = self.operation.tool["inputSchema"]["properties"][name]
        text = words.described(self.operation.arguments.fields[name], shape)
        return self._with_options(text, literal=shape.get("enum", ()))

    @property
    def option_names(self) -> dict[str, str]:
        """The option names of the arguments."""
        return {
            name: name.upper() if name in self.positional else words.option_name(name)
            for name in self.operation.arguments.fields
        }

    @property
    def help(self) -> str:
        """The help text of the command and of its positional arguments."""
        arguments = [f"{name.upper()}: {self.described(name)}" for name in self.positional]
        return "\n\n".join([self._with_options(self.operation.description), *arguments])

    def _with_options(self, text: str, literal: Collection[str] = ()) -> str:
        """The text for a shell, with the options of the command for `argument` and `argument=true`.

        A `literal` is a value, even if it is also the name of an argument. Options are not quoted.
        """
        for expression, words_here in IN_SHELL:
            text = re.sub(expression, words_here, text)
        names = {name: option for name, option in self.option_names.items() if name not in literal}
        return re.sub(r"`(\w+?)(=true)?`", lambda name: names.get(name[1], f"`{name[1]}`"), text)


@dataclass(frozen=True)
class Spelling:
    """Writes next calls as shell commands, with the command names and the constant options."""

    prefix: tuple[str, ...]
    entries: Sequence[Entry[Any]]
    constant_options: tuple[str, ...] = ()

    def __call__(self, call: Continuation, *extra: str) -> str:
        """A next call as a command for a shell, with more options."""
        entry = next(entry for entry in self.entries if entry.operation.name == call.operation)
        arguments = dict(call.args)
        positional = [str(arguments.pop(name)) for name in entry.positional if name in arguments]
        options = [word for pair in arguments.items() for word in words.option_words(*pair)]
        return self._line(entry.name, positional, [*options, *extra, *self.constant_options])

    def _line(self, command: str, positional: Sequence[str], options: Sequence[str]) -> str:
        dashed = any(name.startswith("-") for name in positional)  # would be parsed as options
        before, after = ([], ["--", *positional]) if dashed else (positional, [])
        return words.line([*self.prefix, *command.split(), *before, *options, *after])

    def blob(self, binary: Bytes) -> str:
        """The command that writes the bytes of a blob or of base64 text to a file."""
        if binary.route is None:
            return bytes_line(binary)
        options = ["--output", "FILE", *self.constant_options]
        if isinstance(binary.known, Base64):
            return self._line("export blob", [binary.id, binary.field_path], options)
        connection = handles.parse(binary.id).connection_id
        if connection:
            options = [*words.option_words("connection_id", connection), *options]
        return self._line("blob", [binary.known.id], options)

    def with_commands(self, text: str) -> str:
        """The text with the names of operations replaced by their commands."""
        for entry in self.entries:
            name, command = entry.operation.name, " ".join((*self.prefix, entry.name))
            text = text.replace(f"`{name}`", f"`{command}`")
            if "_" in name:  # the others are also plain words
                text = re.sub(rf"\b{name}\b", f"`{command}`", text)
            text = text.replace(f"{name}(stream)", f"`{command} STREAM`")
        return text


class Words(click.Command):
    """A command that accepts any number of words and explains how to pass one such as `-this`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(context, args)
        except click.NoSuchOption as error:
            if error.possibilities or error.option_name.startswith("--"):
                raise
            raise click.UsageError(
                f"No such option: {error.option_name}. If a search word begins with -, quote "
                "the whole query, or put -- before the query.",
                context,
            ) from error


@contextmanager
def report_errors(
    spelling: Spelling,
    operation: AnyOperation | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    as_json: bool = False,
    server: str | None = None,
) -> Iterator[None]:
    """Prints an error, its fix and the calls to try instead to stderr, and exits.

    The exit code is that of `errors`. `as_json` prints the error as REST does; `server` is the
    address of a server, which is named if that is what failed.
    """
    try:
        yield
    except SettingsError as error:
        output.say(f"Error: {error}")
        sys.exit(USAGE)
    except EvidenceError as error:
        answered = isinstance(error, (Unavailable, TimedOut))
        if server and isinstance(error, (Unreached, Late)):
            doubt = " Is it running?" if error.why.startswith("does not answer") else ""
            error.message = f"{server} {error.why}.{doubt} Run `rung doctor {server}` for details."
            answered = False
        if as_json:
            kind = TYPES.get(STATUS[error.kind], "api_error")
            output.json({"error": {"type": kind, **wire.failure(error)["error"]}}, err=True)
            sys.exit(exit_code(error))
        if operation is not None:
            error.calls += retries(error, operation, dict(arguments or {}))
        error.message = spelling.with_commands(error.message)
        error.hint = error.hint and spelling.with_commands(error.hint)
        code, _, lines = failure.render_lines(error, spelling).partition("\n")
        output.say(f"Error: {lines}" if output.on_terminal(err=True) else f"{code}\n{lines}")
        if server and answered:
            output.say(f"server: {server}")
        for note in getattr(error, "__notes__", ()):
            output.say(note)
        if isinstance(error, NoToken) and error.options and operation is not None:
            again = Continuation(operation.name, dict(arguments or {}), "retry")
            output.say(f"retry: {spelling(again, *error.options)}")
        sys.exit(exit_code(error))
