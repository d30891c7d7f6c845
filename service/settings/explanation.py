"""Describes the effective settings and other variables, and writes the example file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from textwrap import wrap
from typing import Any

from service.settings import HIDDEN, OWNER_VARIABLES, SETTINGS, TEXTS, InForce, Setting, parsing


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that another part reads; `where` names it."""

    name: str
    where: str
    example: str
    help: str


#: Read by click for commands with the option, or by the platform.
BESIDE = tuple(Variable(**row) for row in TEXTS["others"])
PREFIX = "RUNG_"
COLUMNS = 98
HEAD = """\
# Every setting of Rung, with its default. Written by `make docs` from the code.
#
# Copy this file, remove the # from the settings you change, and start Rung with it:
#   docker run --env-file rung.env …      systemd: EnvironmentFile=/etc/rung.env
#   set -a; . ./rung.env; set +a          in a shell
# An empty variable counts as unset. `rung config --explain` shows the effective settings."""


def shown(effective: InForce) -> str:
    """A value for display, without secrets; an address without user and query."""
    if effective.value in (None, ()):
        return "none"
    if effective.setting.secret:
        return HIDDEN
    values = effective.value if isinstance(effective.value, tuple) else (effective.value,)
    return " ".join(parsing.without_secrets(text_of(element)) for element in values)


def line(effective: InForce) -> str:
    """A setting as a line of a file of variables; commented out without a value."""
    if effective.value in (None, ()):
        return f"#{effective.setting.variable}="
    return f"{effective.setting.variable}={shown(effective)}"


def text_of(value: Any) -> str:
    """A value as the text of its variable."""
    if value is None:
        return ""
    return " ".join(value) if isinstance(value, tuple) else str(value)


def explained(effective: InForce) -> str:
    """A setting's value, origin, meaning and example."""
    setting = effective.setting
    meaning = "\n".join(_wrapped(setting, "  "))
    first = f"{setting.variable} = {shown(effective)}   ({effective.origin})"
    return f"{first}\n{meaning}\n  for example {setting.example}"


def example_file() -> str:
    """A file of variables for Docker and systemd: every setting, commented out."""
    return "\n\n".join([HEAD, *map(_example, SETTINGS)]) + "\n"


def _example(setting: Setting) -> str:
    default = text_of(setting.default)
    lines = _wrapped(setting, "# ")
    if setting.example != default:
        lines.append(f"# Example: {setting.example}")
    return "\n".join([*lines, f"#{setting.variable}={default}"])


def _wrapped(setting: Setting, indent: str) -> list[str]:
    """The lines of a setting's meaning; names with hyphens stay whole."""
    return wrap(
        setting.help,
        COLUMNS,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def strangers(environ: Mapping[str, str]) -> Iterator[str]:
    """A warning for each RUNG_ variable that is not a setting, with a suggestion."""
    names = [*(setting.variable for setting in SETTINGS), *(variable.name for variable in BESIDE)]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in names and name not in OWNER_VARIABLES:
            close = next(iter(get_close_matches(name, names, n=1)), None)
            advice = f"Did you mean {close}?" if close else "Unset it or correct the name."
            yield f"{name} is not a Rung setting and has no effect. {advice}"
