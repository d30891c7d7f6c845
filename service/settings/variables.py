"""Environment variables other than settings: those of commands and of the platform."""

from dataclasses import dataclass


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
