"""The supported clients, one row each."""

import json
import shlex
from collections.abc import Callable

from service.clients import toml
from service.clients.client import (
    PLACEHOLDER,
    TOKEN_VARIABLE,
    Client,
    Config,
    Credential,
    Entry,
    Launcher,
    Snippet,
    is_loopback,
    pretty,
)
from service.clients.place import Place

NAME = "rung"
BRIDGE_VARIABLE = "RUNG_AUTHORIZATION"
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def named(name: str) -> Client:
    """The client of that name, which must be one of the table."""
    return next(client for client in CLIENTS if client.name == name)


def bearer(token: str) -> str:
    return f"Bearer {token}"


def _headers(credential: Credential) -> Entry:
    return {"headers": {"Authorization": bearer(credential.text)}} if credential.text else {}


def _address(url: str, credential: Credential) -> Entry:
    return {"url": url, **_headers(credential)}


def _typed_address(url: str, credential: Credential) -> Entry:
    return {"type": "http", **_address(url, credential)}


def _gemini_address(url: str, credential: Credential) -> Entry:
    return {"httpUrl": url, **_headers(credential)}


def _codex_address(url: str, credential: Credential) -> Entry:
    if not credential.text:
        return {"url": url}
    if not credential.inline:
        return {"url": url, "bearer_token_env_var": credential.text}
    return {"url": url, "http_headers": {"Authorization": bearer(credential.text)}}


def _bridge(url: str, credential: Credential) -> Entry:
    """The bridge as a local command: the bearer in a variable, as spaces in arguments get lost."""
    entry: Entry = {"command": "npx", "args": ["-y", *_bridge_arguments(url)]}
    if credential.text:
        entry["args"] += ["--header", f"Authorization:${{{BRIDGE_VARIABLE}}}"]
        entry["env"] = {BRIDGE_VARIABLE: bearer(credential.text)}
    return entry


def _bridge_arguments(url: str) -> list[str]:
    plain = ["--allow-http"] if url.startswith("http:") and not is_loopback(url) else []
    return ["mcp-remote", url, "--transport", "http-only", *plain]


def _command(launcher: Launcher, credential: Credential) -> Entry:
    entry: Entry = {"command": launcher.command, "args": list(launcher.arguments)}
    return {**entry, "env": {TOKEN_VARIABLE: credential.text}} if credential.text else entry


def _typed_command(launcher: Launcher, credential: Credential) -> Entry:
    return {"type": "stdio", **_command(launcher, credential)}


def _codex_command(launcher: Launcher, credential: Credential) -> Entry:
    entry: Entry = {"command": launcher.command, "args": list(launcher.arguments)}
    if credential.text and not credential.inline:
        return {**entry, "env_vars": [credential.text]}
    return {**entry, "env": {TOKEN_VARIABLE: credential.text}} if credential.text else entry


CLAUDE = Config(
    "json",
    "mcpServers",
    {
        "user": Place(
            "~/.config/Claude/claude_desktop_config.json",
            "~/Library/Application Support/Claude/claude_desktop_config.json",
            "%APPDATA%\\Claude\\claude_desktop_config.json",
        )
    },
    _bridge,
    _command,
)
CLAUDE_CODE = Config(
    "json",
    "mcpServers",
    {"user": Place("~/.claude.json", variable="CLAUDE_CONFIG_DIR"), "project": Place(".mcp.json")},
    _typed_address,
    _typed_command,
    reference=f"${{{TOKEN_VARIABLE}}}",
)
CURSOR = Config(
    "json",
    "mcpServers",
    {"user": Place("~/.cursor/mcp.json"), "project": Place(".cursor/mcp.json")},
    _address,
    _command,
    reference=f"${{env:{TOKEN_VARIABLE}}}",
)
VSCODE = Config(
    "json",
    "servers",
    {
        "user": Place(
            "~/.config/Code/User/mcp.json",
            "~/Library/Application Support/Code/User/mcp.json",
            "%APPDATA%\\Code\\User\\mcp.json",
        ),
        "project": Place(".vscode/mcp.json"),
    },
    _typed_address,
    _typed_command,
    reference="${input:{name}-token}",
    prompts=True,
)
CODEX = Config(
    "toml",
    "mcp_servers",
    {
        "user": Place("~/.codex/config.toml", variable="CODEX_HOME"),
        "project": Place(".codex/config.toml"),
    },
    _codex_address,
    _codex_command,
    reference=TOKEN_VARIABLE,
)
GEMINI = Config(
    "json",
    "mcpServers",
    {"user": Place("~/.gemini/settings.json"), "project": Place(".gemini/settings.json")},
    _gemini_address,
    _command,
    reference=f"${TOKEN_VARIABLE}",
)


def prompt(name: str) -> Entry:
    """The VS Code prompt for the token of one server."""
    return {
        "type": "promptString",
        "id": f"{name}-token",
        "description": f"Token of {name}",
        "password": True,
    }


def _recommended(url: str, token: str) -> tuple[Snippet, ...]:
    lines = [f"URL     {url}"]
    if token:
        lines.append(f"Header  Authorization: {bearer(token)}")
    return (Snippet("Streamable HTTP", "text", "\n".join(lines)),)


def _written(config: Config, scope: str = "user") -> Callable[[str, str], tuple[Snippet, ...]]:
    """The file of a client with only this server."""

    def snippets(url: str, token: str) -> tuple[Snippet, ...]:
        credential = config.credential(token, NAME)
        entry = config.http(url, credential)
        if config.language == "toml":
            text = toml.block(config.table, NAME, entry).rstrip()
        else:
            asked = {"inputs": [prompt(NAME)]} if token and config.prompts else {}
            text = pretty({**asked, config.table: {NAME: entry}})
        file = Snippet("Configuration", config.language, text, config.places[scope].shown)
        if credential.inline or not token or config.prompts:
            return (file,)
        return (_exported(token), file)

    return snippets


def _exported(token: str) -> Snippet:
    return Snippet("Environment", "sh", f"export {TOKEN_VARIABLE}={shlex.quote(token)}")


def _claude_code(url: str, token: str) -> tuple[Snippet, ...]:
    command = ["claude", "mcp", "add", "--transport", "http", NAME, url]
    return (_shell("Command", command, token),)


def _mcp_remote(url: str, token: str) -> tuple[Snippet, ...]:
    return (_shell("Command", ["npx", "-y", *_bridge_arguments(url)], token),)


def _curl(url: str, token: str) -> tuple[Snippet, ...]:
    command = ["curl", "-s", url, "-H", "Content-Type: application/json"]
    return (_shell("Command", command, token, "-H", "-d", json.dumps(LIST_TOOLS)),)


def _shell(
    label: str, command: list[str], token: str, header: str = "--header", *more: str
) -> Snippet:
    """A command; a token that is not shown is taken from the environment when it runs."""
    words = [shlex.quote(word) for word in command]
    if token == PLACEHOLDER:
        words += [header, f'"Authorization: {bearer("$" + TOKEN_VARIABLE)}"']
    elif token:
        words += [header, shlex.quote(f"Authorization: {bearer(token)}")]
    return Snippet(label, "sh", " ".join([*words, *map(shlex.quote, more)]))


def _chatgpt(url: str, token: str) -> tuple[Snippet, ...]:
    return () if token else (Snippet("Server URL, authentication: none", "text", url),)


def _goose(url: str, token: str) -> tuple[Snippet, ...]:
    lines = [
        "extensions:",
        f"  {NAME}:",
        f"    name: {NAME}",
        "    type: streamable_http",
        f"    uri: {json.dumps(url)}",
        "    enabled: true",
        "    timeout: 300",
    ]
    if token:
        lines += [
            f"    env_keys: [{TOKEN_VARIABLE}]",
            "    headers:",
            f'      Authorization: "Bearer ${{{TOKEN_VARIABLE}}}"',
        ]
    place = "~/.config/goose/config.yaml"
    file = Snippet("Configuration", "yaml", "\n".join(lines), place)
    return (_exported(token), file) if token else (file,)


RECOMMENDED = Client(
    "any",
    "Any MCP client",
    True,
    "Give the client this URL, with Streamable HTTP as the transport, and send the bearer "
    "token as a request header.",
    _recommended,
)

CLIENTS: tuple[Client, ...] = (
    Client(
        "claude",
        "Claude",
        False,
        "Connectors of claude.ai sign in with OAuth; some accounts can also set request "
        "headers. Claude Desktop starts only local commands, so mcp-remote (which needs Node) "
        "sends the token, which is in the file.",
        _written(CLAUDE),
        CLAUDE,
    ),
    Client(
        "claude-code",
        "Claude Code",
        True,
        "Supports headers. The command saves the token in ~/.claude.json; a file can refer to "
        f"${{{TOKEN_VARIABLE}}} instead.",
        _claude_code,
        CLAUDE_CODE,
    ),
    Client(
        "chatgpt",
        "ChatGPT",
        False,
        "Apps in developer mode sign in with OAuth or not at all, and have no field for a "
        "token. They can use a URL that needs no token, such as /mcp/papers.",
        _chatgpt,
    ),
    Client(
        "cursor",
        "Cursor",
        True,
        f"Supports headers and reads {TOKEN_VARIABLE} from its environment. Started from a "
        "dock or a menu, it has no such variable; write the token into the file.",
        _written(CURSOR),
        CURSOR,
    ),
    Client(
        "vscode",
        "VS Code",
        True,
        "Supports headers, asks for the token once and stores it outside the file.",
        _written(VSCODE, "project"),
        VSCODE,
    ),
    Client(
        "codex",
        "Codex",
        True,
        f"Supports bearer tokens and reads {TOKEN_VARIABLE} from its environment.",
        _written(CODEX),
        CODEX,
    ),
    Client(
        "gemini",
        "Gemini CLI",
        True,
        f"Supports headers and reads {TOKEN_VARIABLE} from its environment.",
        _written(GEMINI),
        GEMINI,
    ),
    Client(
        "goose",
        "Goose",
        True,
        f"Supports headers and reads {TOKEN_VARIABLE} from its environment or keyring.",
        _goose,
    ),
    Client(
        "mcp-remote",
        "mcp-remote",
        True,
        "A bridge for clients that start only local commands. Needs Node.",
        _mcp_remote,
    ),
    Client("curl", "curl", True, "Sends the header directly.", _curl),
)
