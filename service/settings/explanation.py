"""Describes the effective settings and other variables, and writes the example file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from textwrap import wrap
from typing import Any

from service.settings import HIDDEN, OWNER_VARIABLES, SETTINGS, InForce, Setting, parsing


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that another part reads; `where` names it."""

    name: str
    where: str
    example: str
    help: str


#: Read by click for commands with the option, or by the platform.
BESIDE: tuple[Variable, ...] = (
    Variable(
        "RUNG_URL",
        "commands",
        "https://rung.example.com",
        "The running Rung that commands read from. Option: --url.",
    ),
    Variable(
        "RUNG_TOKEN",
        "commands",
        "rung_…",
        "The client token that commands use. Options: --token, --token-file.",
    ),
    Variable(
        "RUNG_CONFIG",
        "commands",
        "~/.config/rung/config.toml",
        "The configuration file for commands.",
    ),
    Variable(
        "PDPP_CACHE_ROOT",
        "commands",
        ".pdpp",
        "Where `pdpp connect` keeps credentials. Option of rung stdio: --cache-root.",
    ),
    Variable(
        "XDG_CONFIG_HOME",
        "commands",
        "~/.config",
        "The directory of rung/config.toml, if RUNG_CONFIG is not set.",
    ),
    Variable("NO_COLOR", "commands", "1", "If set to any value, disables colours on a terminal."),
    Variable(
        "DYNO",
        "service",
        "web.1",
        "Set by Heroku. Changes the default of RUNG_TRUSTED_PROXY_HOPS to 1.",
    ),
    Variable(
        "TMPDIR",
        "service",
        "/tmp",
        "Where downloads are kept if var/ is not writable.",
    ),
    Variable(
        "HTTPS_PROXY",
        "both",
        "http://proxy.example.com:3128",
        "The proxy for https URLs; HTTP_PROXY for http URLs.",
    ),
    Variable("NO_PROXY", "both", "localhost,.internal", "Hosts to reach without the proxy."),
    Variable(
        "REQUESTS_CA_BUNDLE",
        "both",
        "/etc/ssl/company.pem",
        "A file of certificates to trust instead of the system's, for example for a company proxy.",
    ),
)


PREFIX = "RUNG_"
COLUMNS = 98
HEAD = """\
# Every setting of Rung, with its default. Written by `make docs` from the code.
#
# Copy this file, remove the # from the settings you change, and start Rung with it:
#   docker run --env-file rung.env …      systemd: EnvironmentFile=/etc/rung.env
#   set -a; . ./rung.env; set +a          in a shell
# An empty variable is unset. `rung config --explain` shows the effective settings."""


def shown(found: InForce) -> str:
    """A value for a person to see: no secret, and of an address no user and no query."""
    if found.value in (None, ()):
        return "none"
    if found.setting.secret:
        return HIDDEN
    values = found.value if isinstance(found.value, tuple) else (found.value,)
    return " ".join(parsing.without_secrets(spelled(each)) for each in values)


def line(found: InForce) -> str:
    """A setting as a line of a file of variables; commented out without a value."""
    if found.value in (None, ()):
        return f"#{found.setting.variable}="
    return f"{found.setting.variable}={shown(found)}"


def spelled(value: Any) -> str:
    """A value as the text of its variable."""
    if value is None:
        return ""
    return " ".join(value) if isinstance(value, tuple) else str(value)


def explained(found: InForce) -> str:
    """A setting's value, origin, meaning and example."""
    setting = found.setting
    meaning = "\n".join(wrap(setting.help, COLUMNS, initial_indent="  ", subsequent_indent="  "))
    first = f"{setting.variable} = {shown(found)}   ({found.origin})"
    return f"{first}\n{meaning}\n  for example {setting.example}"


def example_file() -> str:
    """A file of variables, as Docker and systemd read them: every setting, commented out."""
    return "\n\n".join([HEAD, *map(_example, SETTINGS)]) + "\n"


def _example(setting: Setting) -> str:
    default = spelled(setting.default)
    lines = wrap(setting.help, COLUMNS, initial_indent="# ", subsequent_indent="# ")
    if setting.example != default:
        lines.append(f"# Example: {setting.example}")
    return "\n".join([*lines, f"#{setting.variable}={default}"])


def strangers(environ: Mapping[str, str]) -> Iterator[str]:
    """A warning for each RUNG_ variable that is not a setting, with a suggestion."""
    known = [*(setting.variable for setting in SETTINGS), *(each.name for each in BESIDE)]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and name not in OWNER_VARIABLES:
            close = next(iter(get_close_matches(name, known, n=1)), None)
            advice = f"Did you mean {close}?" if close else "Unset it or correct the name."
            yield f"{name} is not a Rung setting and has no effect. {advice}"
