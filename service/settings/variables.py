"""Variables beside the settings: those of commands, and those of the platform that we heed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that is read elsewhere; `where` names its reader."""

    name: str
    where: str
    example: str
    help: str


#: Read by click where a command has the option, or by what the service stands on.
BESIDE: tuple[Variable, ...] = (
    Variable(
        "RUNG_URL",
        "commands",
        "https://rung.example.com",
        "The running Rung that commands ask; --url on the command line.",
    ),
    Variable(
        "RUNG_TOKEN",
        "commands",
        "rung_…",
        "The client token that commands send; --token or --token-file on the command line.",
    ),
    Variable(
        "RUNG_CONFIG",
        "commands",
        "~/.config/rung/config.toml",
        "The file with defaults of commands.",
    ),
    Variable(
        "PDPP_CACHE_ROOT",
        "commands",
        ".pdpp",
        "Where `pdpp connect` keeps credentials; --cache-root of rung stdio.",
    ),
    Variable(
        "XDG_CONFIG_HOME",
        "commands",
        "~/.config",
        "The folder whose rung/config.toml is that file where RUNG_CONFIG names none.",
    ),
    Variable("NO_COLOR", "commands", "1", "Set to anything: no colours on a terminal."),
    Variable("DYNO", "service", "web.1", "Set by Heroku; makes RUNG_TRUSTED_PROXY_HOPS 1."),
    Variable(
        "TMPDIR",
        "service",
        "/tmp",
        "Where files are kept that are fetched, where var/ cannot be written.",
    ),
    Variable(
        "HTTPS_PROXY",
        "both",
        "http://proxy.example.com:3128",
        "The proxy for https addresses; HTTP_PROXY for http ones.",
    ),
    Variable("NO_PROXY", "both", "localhost,.internal", "Hosts that are asked without the proxy."),
    Variable(
        "REQUESTS_CA_BUNDLE",
        "both",
        "/etc/ssl/company.pem",
        "Certificates to trust instead of the usual ones, such as those of a company proxy.",
    ),
)
