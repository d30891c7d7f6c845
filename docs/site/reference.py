"""Writes docs/reference and the tables of docs/tour.md from the code.

`make docs` writes the pages and rung.env.example; `make docs-check` fails if they differ.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import orjson

from evidence import errors, limits
from service import openapi
from service.__main__ import rung
from service.cli.deferred import loaded
from service.extras import EXTRAS, install_command
from service.openapi import Mounted
from service.operations import OPERATIONS
from service.operations.base import AnyOperation
from service.operations.papers import PAPER_OPERATIONS
from service.settings import OWNER_VARIABLES, SETTINGS, Setting
from service.settings.explanation import BESIDE, example_file
from service.statuses import STATUS

TOUR: Final = Path("docs/tour.md")
PACKAGES: Final = ("evidence", "renderers", "service")
BEGIN: Final = "<!-- Written by `make docs` from the docstrings of the modules. -->\n"
END: Final = "<!-- End of the written tables. -->\n"


def tour(root: Path = Path()) -> str:
    """The text of the tour, its tables in step with the modules under `root`."""
    page = (root / TOUR).read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = "\n".join(_folder(root, folder) for folder in folders(root))
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def folders(root: Path) -> Iterable[Path]:
    """Every folder with Python code in it, each before the folders inside it."""
    found = {
        path.parent.relative_to(root) for top in PACKAGES for path in (root / top).rglob("*.py")
    }
    return sorted(found)


def _folder(root: Path, folder: Path) -> str:
    """The section of one folder: its heading, its docstring, a row for each module."""
    modules = sorted((root / folder).glob("*.py"))
    rows = [f"| `{path.name}` | {_first_line(path)} |" for path in modules if _has_code(path)]
    about = _docstring(root / folder / "__init__.py")
    return "\n".join([f"## `{folder.as_posix()}/`\n", f"{about}\n", *_table(rows)])


def _table(rows: list[str]) -> Iterator[str]:
    if rows:
        yield from ("| module | |", "|---|---|", *rows, "")


def _docstring(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n\n")[0]


def _first_line(path: Path) -> str:
    line = re.sub(r"\s+", " ", _docstring(path))
    return line.replace("|", "\\|")


def _has_code(path: Path) -> bool:
    """True if a module has more than a docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(not isinstance(node, ast.Expr) for node in tree.body)


NOTE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"
HELP_COLUMNS = 80
# (smallest, largest, format of the pair, format of the smallest alone).
BOUNDS = (
    ("minimum", "maximum", "{} to {}", "from {}"),
    ("", "maxLength", "at most {1} characters", ""),
    ("", "maxItems", "at most {1} names", ""),
)


def tools() -> str:
    """Every operation: its arguments, as the tool schema states them, and calls that work."""
    return page(
        "Tools",
        "These tools read records, at `/mcp`:",
        *(_tool(operation) for operation in OPERATIONS),
        "These tools read papers, at `/mcp/papers`:",
        *(_tool(operation) for operation in PAPER_OPERATIONS),
    )


def _tool(operation: AnyOperation) -> str:
    schema = operation.tool["inputSchema"]
    required = schema.get("required", ())
    spelled = operation.rest_names
    rows = [
        (
            f"`{name}`" + (f" (REST `{spelled[name]}`)" if name in spelled else ""),
            f"{_type(found)}, required" if name in required else _type(found),
            _allowed(found),
            found["description"],
        )
        for name, found in schema["properties"].items()
    ]
    examples = "\n".join(
        f"{operation.name} {orjson.dumps(example).decode()}" for example in operation.examples
    )
    return "\n\n".join(
        (
            f"## {operation.name}",
            operation.description,
            _route(operation),
            table(("argument", "type", "allowed", "meaning"), rows),
            f"```\n{examples}\n```",
        )
    )


def _route(operation: AnyOperation) -> str:
    defaults = [f"`{name}` defaults to {value}" for name, value in operation.rest_defaults.items()]
    beside = f"; {', '.join(defaults)}" if defaults else ""
    asked = [f"`GET {path}`" for path in (operation.route.path, *operation.route.variants)]
    asked += [f"`POST {operation.route.path}`"] if operation.route.posted else []
    paths = " and ".join(asked)
    return f"REST: {paths}{beside}"


def _type(found: dict[str, Any]) -> str:
    inner = found.get("items", {}).get("type")
    return f"{found['type']} of {inner}" if inner else str(found["type"])


def _allowed(found: dict[str, Any]) -> str:
    if "enum" in found:
        return ", ".join(f"`{word}`" for word in found["enum"])
    for least, most, both, alone in BOUNDS:
        if most in found:
            return both.format(found.get(least), f"{found[most]:,}")
        if least in found:
            return alone.format(found[least])
    return ""


def settings() -> str:
    """Every environment variable that is read."""
    rows = [
        (f"`{setting.variable}`", _default(setting), f"`{setting.example}`", setting.help)
        for setting in SETTINGS
    ]
    others = [(f"`{one.name}`", one.where, f"`{one.example}`", one.help) for one in BESIDE]
    *first, last = (f"`{name}`" for name in OWNER_VARIABLES)
    refused = f"{', '.join(first)} or {last}"
    return page(
        "Settings",
        "Rung reads its settings from the environment when it starts, and reports all invalid "
        "settings at once. `rung config` prints the effective settings. `rung config --explain` "
        "also prints where each value comes from and what it means. `rung config --example` "
        "prints a template with all defaults; the same template is in the repository as "
        "`rung.env.example`.",
        table(("variable", "default", "example", "meaning"), rows),
        "## Other variables\n\nRung also reads these variables. Some are only for commands, and "
        "some belong to the platform.",
        table(("variable", "read by", "example", "meaning"), others),
        f"Rung refuses owner credentials: it does not start if {refused} is set.",
    )


def _default(setting: Setting) -> str:
    if setting.default not in (None, ()):
        return f"`{setting.default}`"
    return "see meaning" if "Default: " in setting.help else "none"


def extras() -> str:
    """The packages that only parts of Rung need, and how to install them."""
    rows = [
        (f"`{extra}`", purpose, f"`{install_command(extra)}`")
        for extra, (purpose, _) in EXTRAS.items()
    ]
    return page(
        "Extras",
        "Some parts of Rung need additional packages. Each extra is a set of such packages. To "
        "install an extra, run its command in the environment in which Rung is installed; in a "
        "checkout, `pip` is `.venv/bin/pip`. With pipx, write `pipx inject rung` instead of "
        "`pip install`; with uvx, pass each package after `--with`.",
        table(("extra", "required for", "command"), rows),
        "You can also install extras together with Rung: add their names to the path of the "
        "checkout or of the wheel, as in `pip install '.[documents,semantic]'`. Do not install "
        "Rung by its name: the name is not registered on the package index yet.",
    )


def bounds() -> str:
    """Every limit."""
    header = ("limit", "value", "meaning")
    return page(
        "Limits",
        "In a limit's name, `_chars` means code points, `_bytes` means UTF-8 bytes, and "
        "`_seconds` means seconds. A limit is a maximum unless its meaning says otherwise.",
        "## Contract\n\nClients can rely on these limits. You cannot change them.",
        table(header, _limits(limits.CONTRACT)),
        "## Budgets\n\nThese limits are internal, so clients cannot rely on them.",
        table(header, _limits(limits.BUDGETS)),
    )


def _limits(found: Any) -> Iterator[tuple[str, str, str]]:
    for name, value, why in limits.describe(found):
        yield f"`{name}`", f"{value:,}", why


def failures() -> str:
    """Every kind of error with its HTTP status."""
    rows = [
        (
            *(f"`{kind.kind}`", str(STATUS[kind.kind]), f"`{kind.default_code}`"),
            *(f"`{kind.__name__}`", kind.__doc__ or ""),
        )
        for kind in errors.KINDS
    ]
    return page(
        "Errors",
        table(("kind", "REST status", "usual code", "class", "meaning"), rows),
        "An MCP tool that fails returns HTTP 200 and a result with `isError`. If Rung refuses the "
        "request before the tool runs, for example because of the token, it returns the status "
        "above.",
        (inspect.getdoc(errors) or "").partition("\n\n")[2],
    )


def commands() -> str:
    """The help of every command."""
    context = click.Context(
        rung, info_name="rung", terminal_width=HELP_COLUMNS, **rung.context_settings
    )
    return page("Commands", *_helps(rung, context))


def _helps(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}\n\n```\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = loaded(command.commands[name])
            yield from _helps(
                inner,
                click.Context(inner, parent=context, info_name=name, terminal_width=HELP_COLUMNS),
            )


def page(title: str, *parts: str) -> str:
    """A page of Markdown."""
    return "\n\n".join((f"# {title}", NOTE, *parts)) + "\n"


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines
    )


def document() -> str:
    """The OpenAPI document of a server of records and papers."""
    found = openapi.document(Mounted(records=True, papers=True))
    return orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n"


PAGES = {
    "openapi.json": document,
    "tools.md": tools,
    "settings.md": settings,
    "extras.md": extras,
    "limits.md": bounds,
    "errors.md": failures,
    "cli.md": commands,
}


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail if a page differs.")
@click.option(
    "--example",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("rung.env.example"),
    show_default=True,
    help="The example file to write.",
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def main(folder: Path, check: bool, example: Path) -> None:
    """Write the reference pages into FOLDER."""
    written = {folder / name: build() for name, build in PAGES.items()}
    written[example] = example_file()
    written[TOUR] = tour()
    if check:
        differing = [str(path) for path, text in written.items() if _read(path) != text]
        if differing:
            raise click.ClickException(f"{', '.join(differing)}: run `make docs`.")
        return
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    main()
