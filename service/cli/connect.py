"""`rung connect`: shows or writes the MCP configuration of a client."""

import re
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from evidence.errors import InvalidRequest
from service import credentials, settings
from service.addresses import MCP, endpoint, is_loopback
from service.cli import tokens
from service.cli.opening import read_token, refuse_owners
from service.cli.output import say
from service.cli.source import PATH, PlaceType, explicit_names
from service.cli.store import teaching
from service.credentials import TOKEN_VARIABLE
from service.place import file_of
from service.clients.servers import Taken, Unreadable, add, remove, server
from service.clients.table import CLIENTS, PLACEHOLDER, RECOMMENDED, Client, Config, Credential
from service.clients.table import Entry, in_file, client_of
from service.clients.writing import Changed, FileState, alone
from service.sources.remote.outbound import endpoint_problem

TRIES = 3
BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Target:
    """The file to edit, its client, and the name of the server in it."""

    client: Client
    config: Config
    path: Path
    name: str


def rewrite(
    target: Target,
    change: Callable[[str, FileState], str | None],
    *,
    private: bool = False,
    preview: str | None = None,
) -> bool:
    """True if the file was written; with `preview`, a dry run, that text is printed instead.

    `change` gives the new text, or None for no file. It is called again if another process writes
    the file meanwhile. A `private` file is readable by its owner only.
    """
    with alone():
        for _ in range(TRIES):
            state = FileState.of(target.path)
            text, mark = split(state.content or b"", target.path)
            try:
                new = change(text, state)
            except Unreadable as error:
                raise click.ClickException(f"{target.path}: {error.message}") from error
            if new == text:
                click.echo(f"{target.path} is up to date; nothing changed.")
                return False
            if preview is not None:
                click.echo(f"Nothing was written. Planned change to {target.path}:\n{preview}")
                return False
            content = None if new is None else (mark + new).encode()
            with suppress(Changed):
                backup = state.replace(content, datetime.now(UTC), private=private)
                done = "was written" if content is not None else "was removed"
                click.echo(f"{target.path} {done}.")
                if backup:
                    click.echo(f"The previous version is in {backup}.")
                return True
    raise click.ClickException(
        f"{target.path} keeps changing. Close {target.client.title} and try again."
    )


def split(content: bytes, path: Path) -> tuple[str, str]:
    """The text of a file, and its byte order mark, which most files do not have."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} is not UTF-8 text. Nothing was written.") from None
    return (text[1:], BOM) if text.startswith(BOM) else (text, "")


PAPERS = "/mcp/papers"
LOCAL_URL = "http://127.0.0.1:8000"

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

#: The options of the command, by their names.
Options = SimpleNamespace


@click.command()
@click.argument("url", required=False, envvar="RUNG_URL")
@click.option(
    "--client",
    "client_name",
    type=click.Choice([client.name for client in CLIENTS]),
    metavar="NAME",
    help="The client to set up. If the client has a configuration file, the command edits that "
    "file.",
)
@click.option("--token", envvar=TOKEN_VARIABLE, help=f"The token. Also read from {TOKEN_VARIABLE}.")
@click.option("--token-file", type=PATH, help="A file that contains the token.")
@click.option(
    "--no-token",
    "tokenless",
    is_flag=True,
    help="Use no token, because the server needs none or the client signs in.",
)
@click.option(
    "--inline-token",
    is_flag=True,
    help="Write or print the token itself instead of a reference to it.",
)
@click.option(
    "--name", default="rung", show_default=True, help="The server's name in the client's file."
)
@click.option(
    "--config", "file", type=PATH, help="The file to edit instead of the client's default file."
)
@click.option(
    "--stdio",
    "local",
    is_flag=True,
    help="Make the client start `rung stdio` instead of using a URL.",
)
@click.option(
    "--store",
    type=PlaceType(),
    envvar="RUNG_STORE",
    help="With --stdio: the store to serve. Also read from RUNG_STORE.  [default: var/rung.db]",
)
@click.option(
    "--provider-url",
    help="With --stdio: the URL of a PDPP resource server to use instead of a store.",
)
@click.option(
    "--papers",
    type=PATH,
    help="With --stdio: a papers snapshot to serve instead of records.",
)
@click.option("--remove", "removing", is_flag=True, help="Remove the server's entry from the file.")
@click.option(
    "--force", is_flag=True, help="Replace another server's entry that has the same name."
)
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option(
    "--check/--no-check",
    default=True,
    help="First check whether a server answers at URL (default: --check).",
)
@click.pass_context
def connect(
    context: click.Context, /, url: str | None, client_name: str | None, **parameters: Any
) -> None:
    """Show how to connect a client, or write its configuration file.

    URL is the address of the server, with or without /mcp. The default is RUNG_URL, then the URL
    in Rung's configuration file, then http://127.0.0.1:8000. Without --client, nothing is
    written. With --client, the command backs up the client's file and changes only the server's
    entry. Without --inline-token, the command does not write the token if the client can read it
    from a variable or ask for it. If the client can sign in to the server, you need not pass a
    token.
    """
    options, explicit = Options(**parameters), explicit_names(context)
    _refuse_misfits(options, explicit)
    with teaching():
        refuse_owners()
        address = endpoint(url or LOCAL_URL)
        needed = not (options.tokenless or address.endswith(PAPERS))
        # A token in the environment is for records, and is not sent where none is needed.
        secret = options.token if needed or "token" in explicit else None
        secret = read_token(options.token_file, secret) or ""
        client = client_of(client_name) if client_name else RECOMMENDED
        if client_name and not secret and _signs_in(client, address, options):
            start = f" To open it: {client.login.format(name=options.name)}" if client.login else ""
            say(f"{client.title} opens a page where the owner signs in and allows access.{start}")
            needed = False
        if client.config is None:
            if options.removing or options.dry_run or options.local or options.file:
                raise click.UsageError(
                    "With --client, choose a client whose file this command can write."
                )
            token = secret if options.inline_token else PLACEHOLDER
            _tell(client, address, token if secret or needed else "")
            return
        location = client.config.location
        try:
            file = options.file or location.path(sys.platform, Path.home(), settings.environment())
        except RuntimeError:
            raise InvalidRequest(
                "The home directory is unknown. Set HOME, or name the file with --config."
            ) from None
        target = Target(client, client.config, file, options.name)
        if options.removing:
            _take_out(target, dry_run=options.dry_run)
            return
        if options.local:
            if "url" in explicit:
                raise click.UsageError(
                    "With --stdio, the client starts the server. Leave out the URL."
                )
            source = _source(options, "store" in explicit)
            entry, bearer = _local(target, source, secret, options)
        else:
            if options.check:
                _check(address, secret, needed=needed)
            bearer = _credential(target, secret, inline=options.inline_token, needed=needed)
            entry = target.config.http(address, bearer)
        _put_in(target, entry, bearer, options)


def _signs_in(client: Client, address: str, options: Options) -> bool:
    """Whether the client gets its token from the server by itself."""
    own = address.endswith(PAPERS) or options.removing or options.local or options.inline_token
    able = options.check and client.signs_in and not own
    return able and tokens.has_sign_in(address.removesuffix(MCP))


def _refuse_misfits(options: Options, explicit: set[str]) -> None:
    """Refuses options that conflict, rather than ignore one."""
    if not _NAME.fullmatch(options.name):
        raise click.UsageError("--name must have 1 to 64 characters: letters, digits, - and _.")
    if len(explicit & {"token", "token_file", "tokenless"}) > 1:
        raise click.UsageError("Use only one of --token, --token-file and --no-token.")
    if explicit & {"store", "provider_url", "papers"} and not options.local:
        raise click.UsageError("--store, --provider-url and --papers require --stdio.")


def _tell(client: Client, address: str, token: str) -> None:
    """Prints the snippet; for the recommended setup also the list of clients."""
    click.echo(f"{client.title}\n\n{client.note}")
    for snippet in client.snippets(address, token):
        location = f" ({snippet.place})" if snippet.place else ""
        click.echo(f"\n{snippet.label}{location}:\n")
        click.echo("\n".join(f"  {line}" for line in snippet.text.split("\n")))
    if client is not RECOMMENDED:
        return
    click.echo("\nTo write or print a client's configuration:\n")
    click.echo(f"  rung connect {address} --client NAME\n")
    width = max(len(choice.name) for choice in CLIENTS)
    for choice in CLIENTS:
        does = "writes its file" if choice.config else "prints the configuration"
        click.echo(f"  {choice.name:<{width}}  {choice.title}: {does}")


def _source(options: Options, explicit_store: bool) -> list[str]:
    """What `rung stdio` serves, with absolute paths: clients start it in a folder of their own.

    Typed options override a store that only the environment names.
    """
    sources = (options.provider_url, options.papers)
    if explicit_store + sum(source is not None for source in sources) > 1:
        raise click.UsageError("Use only one of --store, --provider-url and --papers.")
    if options.papers is not None:
        return ["--papers", str(options.papers.absolute())]
    if options.provider_url is not None:
        return ["--provider-url", credentials.provider_url(options.provider_url)]
    if (file := file_of(options.store or Path("var/rung.db"))) is None:
        raise InvalidRequest(
            "A client's file must not contain the password of a database. Leave out --stdio, and "
            "connect to a running server: rung connect URL"
        )
    return ["--store", str(file.absolute())]


def _local(
    target: Target, source: list[str], secret: str, options: Options
) -> tuple[Entry, Credential]:
    """The entry that starts `rung stdio`. A token in a separate file stays there."""
    arguments, bearer = ["stdio", *source], Credential("", inline=False)
    if options.papers is None and options.token_file is not None:
        arguments += ["--token-file", str(options.token_file.absolute())]
    elif options.provider_url is not None and not secret:
        provider = credentials.provider_url(options.provider_url)
        root = tokens.root(provider)
        arguments += ["--cache-root", str(root.absolute())]
        path = credentials.cache_file(root, provider)
        saved = f"`rung stdio` uses and refreshes the token in {path}."
        login = f"Get a token before starting the client: {shlex.join(['rung', 'login', provider])}"
        say(saved if path.exists() else login)
    elif options.papers is None:
        needed = options.provider_url is None
        bearer = _credential(target, secret, inline=options.inline_token, needed=needed)
    command = Path(sys.executable).with_name("rung")
    words = [str(command)] if command.exists() else [sys.executable, "-m", "service"]
    return target.config.stdio([*words, *arguments], bearer), bearer


def _credential(target: Target, secret: str, *, inline: bool, needed: bool) -> Credential:
    """The credential as written to the file. A reference does not need the token itself."""
    if not secret and not needed:
        return Credential("", inline=False)
    if not secret and (inline or not target.config.reference):
        raise click.UsageError(
            f"The configuration of {target.client.title} needs the token. Pass it with "
            f"--token-file or in {TOKEN_VARIABLE}."
        )
    return target.config.credential(secret or PLACEHOLDER, target.name, inline=inline)


def _check(address: str, secret: str, *, needed: bool) -> None:
    if secret and address.startswith("http:") and not is_loopback(address):
        say(f"Warning: {address} does not use TLS. Anyone on the network can read the token.")
    problem = endpoint_problem(address, secret)
    if problem:
        raise click.ClickException(
            f"{problem} Nothing was written. Run `rung doctor {address}` for details, or repeat "
            "the command with --no-check."
        )
    if needed and not secret:
        way = f"`rung doctor {address}` checks the token in {TOKEN_VARIABLE}."
        say(f"No token was given, so Rung did not check one. {way}")


def _put_in(target: Target, entry: Entry, bearer: Credential, options: Options) -> None:
    def change(text: str, state: FileState) -> str:
        try:
            return add(target.config, text, target.name, entry, force=options.force)
        except Taken:
            raise click.ClickException(
                f"{target.path} already has a different server named {target.name}. Replace it "
                "with --force, or choose another name with --name."
            ) from None

    preview, asks = None, bool(bearer.text) and not bearer.inline
    if options.dry_run:
        preview = in_file(target.config, target.name, entry, asks=asks)
        preview = preview.replace(bearer.text, PLACEHOLDER) if bearer.inline else preview
    if not rewrite(target, change, private=bearer.inline, preview=preview):
        return
    title = target.client.title
    if asks and target.config.prompts:
        say(f"{title} asks for the token when it first starts the server.")
    elif asks:
        where = "Set that variable in the environment in which you start the client."
        say(f"{title} reads the token from {TOKEN_VARIABLE}. {where}")
    say(f"Restart {title} if it is running.")


def _take_out(target: Target, *, dry_run: bool) -> None:
    def change(text: str, state: FileState) -> str | None:
        if state.content is None or server(target.config, text, target.name) is None:
            return text
        earlier = [split(content, target.path)[0] for content in state.earlier()]
        return remove(target.config, text, target.name, [*earlier, None])

    preview = f"Remove the server {target.name}." if dry_run else None
    rewrite(target, change, preview=preview)
