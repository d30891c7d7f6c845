"""Calendars and contacts of a real server: after each round, the store has what the server has."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from service.cli.sources import WAITING
from service.syncing.kinds import web
from tests.helpers.synced import Synced
from tests.sources.daemon import PASSWORD, USER
from tests.sources.radicale import Radicale, card, event, radicale
from tests.sources.relay import Relay, Reply, Request, relay_to

#: Ten entities, each ten times the one before, in the name of a calendar.
BOMB = "".join(
    f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' if n else '<!ENTITY e1 "elm">' for n in range(10)
)
BOMB = (
    f"<!DOCTYPE x [{BOMB}]><multistatus xmlns='DAV:'><response><href>/&e10;</href></response>"
    "</multistatus>"
)


@pytest.fixture(scope="module")
def running() -> Iterator[Radicale]:
    with radicale() as server:
        yield server


@pytest.fixture
def server(running: Radicale) -> Radicale:
    """The server without collections."""
    running.clear()
    return running


@pytest.fixture
def relay(server: Radicale) -> Iterator[Relay]:
    with relay_to(server.port) as relay:
        yield relay


@pytest.fixture
def synced(tmp_path: Path, relay: Relay) -> Synced:
    """A person with a source of each kind."""
    synced = Synced.make(tmp_path)
    (tmp_path / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    add(synced, relay, "caldav")
    add(synced, relay, "carddav")
    return synced


def add(synced: Synced, relay: Relay, kind: str, path: str = "/", *words: str) -> None:
    """Adds a source whose password a command prints."""
    address = f"http://{USER}@127.0.0.1:{relay.port}{path}"
    command = f"cat {synced.folder / 'password'}"
    words = ("--kind", kind, "--password-command", command, *words)
    synced.ok("source", "add", kind, address, *words)


def calendars(synced: Synced) -> dict[str, tuple[str, str]]:
    """The calendar and the summary of each event in the store."""
    events = synced.records("caldav").get("events", {})
    return {key: (data["calendar"], data["summary"]) for key, data in events.items()}


def names(synced: Synced) -> dict[str, str]:
    contacts = synced.records("carddav").get("contacts", {})
    return {key: data["name"] for key, data in contacts.items()}


def work_of(server: Radicale, count: int) -> Path:
    """A calendar with so many events."""
    work = server.collection("office", "Work", "VCALENDAR")
    for number in range(count):
        event(work, number)
    return work


def test_a_thousand_objects_arrive_change_move_and_go(synced: Synced, server: Radicale) -> None:
    title = "Work; & Élan"
    work = server.collection("office", title, "VCALENDAR")
    home = server.collection("home", "Home", "VCALENDAR")
    friends = server.collection("friends", "Friends", "VADDRESSBOOK")
    others = server.collection("others", "Others", "VADDRESSBOOK")
    for number in range(500):
        event(work if number < 450 else home, number)
        card(friends if number < 450 else others, number)
    before = server.state()
    shown = synced.ok("sync").stderr
    assert "caldav: 500 new." in shown and "carddav: 500 new." in shown
    assert server.state() == before
    keys = {n: f"Work\\; & Élan/{n}@x" if n < 450 else f"Home/{n}@x" for n in range(500)}
    events = {key: (title if n < 450 else "Home", f"Elm {n}") for n, key in keys.items()}
    assert calendars(synced) == events
    contacts = {f"card-{n}": f"Ada {n}" for n in range(500)}
    assert names(synced) == contacts

    event(work, 0, "Oak")
    event(work, 1).rename(home / "moved.ics")
    event(work, 2).unlink()
    event(home, 700)
    card(friends, 0, "Eve")
    card(friends, 1).rename(others / "moved.vcf")
    card(friends, 2).unlink()
    before = server.state()
    shown = synced.ok("sync").stderr
    assert "caldav: 2 new, 1 changed, 2 deleted." in shown
    assert "carddav: 1 changed, 1 deleted." in shown
    del events[keys[1]], events[keys[2]], contacts["card-2"]
    events[keys[0]] = (title, "Oak 0")
    assert calendars(synced) == events | {f"Home/{n}@x": ("Home", f"Elm {n}") for n in (1, 700)}
    assert names(synced) == contacts | {"card-0": "Eve 0"}
    store = synced.content()
    shown = synced.ok("sync").stderr
    assert "caldav: nothing new." in shown and "carddav: nothing new." in shown
    assert synced.content() == store
    assert server.state() == before


def test_a_later_round_reads_only_what_has_changed(
    synced: Synced, server: Radicale, relay: Relay
) -> None:
    work = work_of(server, 5)
    synced.ok("sync", "caldav")
    relay.requests.clear()
    synced.ok("sync", "caldav")
    assert {request.method for request in relay.requests} == {"PROPFIND"}
    event(work, 3, "Oak")
    relay.requests.clear()
    synced.ok("sync", "caldav")
    changes, multiget = [request for request in relay.requests if request.method == "REPORT"]
    assert "sync-collection" in changes.body
    assert re.findall("<href>.*?</href>", multiget.body) == [
        "<href>/ada/office/event%203%40x.ics</href>"
    ]


def test_a_server_without_reports_tokens_and_ctags_is_compared_by_etags(
    synced: Synced, server: Radicale, relay: Relay
) -> None:
    def plain(request: Request, reply: Reply) -> Reply:
        body = re.sub(rb"<(CS:getctag|sync-token)>.*?</\1>", b"", reply.body)
        return Reply(501, b"") if request.method == "REPORT" else reply._replace(body=body)

    relay.change = plain
    work = work_of(server, 5)
    assert "caldav: 5 new." in synced.ok("sync", "caldav").stderr
    event(work, 1, "Oak")
    event(work, 2).unlink()
    assert "caldav: 1 changed, 1 deleted." in synced.ok("sync", "caldav").stderr
    assert sorted(calendars(synced)) == [f"Work/{n}@x" for n in (0, 1, 3, 4)]
    store = synced.content()
    assert "caldav: nothing new." in synced.ok("sync", "caldav").stderr
    assert synced.content() == store
    assert {request.method for request in relay.requests} == {"PROPFIND", "REPORT", "GET"}


def test_a_token_that_the_server_forgot_loses_nothing(synced: Synced, server: Radicale) -> None:
    work = work_of(server, 5)
    synced.ok("sync", "caldav")
    server.forget_tokens()
    event(work, 1, "Oak")
    event(work, 2).unlink()
    assert "caldav: 1 changed, 1 deleted." in synced.ok("sync", "caldav").stderr
    assert sorted(calendars(synced)) == [f"Work/{n}@x" for n in (0, 1, 3, 4)]


def test_changes_in_several_answers_are_all_brought(
    synced: Synced, server: Radicale, relay: Relay
) -> None:
    work = work_of(server, 3)
    synced.ok("sync", "caldav")
    event(work, 1, "Oak")
    middle = server.token("office")
    event(work, 2, "Oak")
    tokens = list[str]()

    def truncated(request: Request, reply: Reply) -> Reply:
        """Lists the first change alone, in the first of the answers."""
        tokens.extend(re.findall("<sync-token>(.*?)<", request.body))
        if len(tokens) != 1 or "multiget" in request.body:
            return reply
        status = "<status>HTTP/1.1 507 Insufficient Storage</status>"
        more = f"<sync-token>{middle}</sync-token><response><href>/{USER}/office/</href>{status}"
        body = re.sub("<sync-token>.*</sync-token>", f"{more}</response>", reply.body.decode())
        body = re.sub("<response><href>[^<]*event%202.*?</response>", "", body)
        return reply._replace(body=body.encode())

    relay.change = truncated
    assert "caldav: 2 changed." in synced.ok("sync", "caldav").stderr
    assert tokens[1] == middle


def test_an_earlier_import_of_an_export_is_recognized(synced: Synced, server: Radicale) -> None:
    work = work_of(server, 5)
    book = server.collection("friends", "Friends", "VADDRESSBOOK")
    for number in range(5):
        card(book, number)
    for path, kind, name in (("office", "caldav", "a.ics"), ("friends", "carddav", "b.vcf")):
        url = f"http://127.0.0.1:{server.port}/{USER}/{path}/"
        export = requests.get(url, auth=(USER, PASSWORD), timeout=10).content
        (synced.folder / name).write_bytes(export)
        synced.ok("import", str(synced.folder / name), "--connection", kind)
    shown = synced.ok("sync").stderr
    assert "caldav: nothing new." in shown and "carddav: nothing new." in shown
    event(work, 2).unlink()
    assert "caldav: 1 deleted." in synced.ok("sync", "caldav").stderr


def test_events_that_were_imported_without_their_calendar_keep_their_ids(
    synced: Synced, server: Radicale
) -> None:
    work = work_of(server, 3)
    synced.ok("import", *map(str, work.glob("*.ics")), "--connection", "caldav")
    assert "caldav: 3 changed." in synced.ok("sync", "caldav").stderr
    assert calendars(synced) == {f"{n}@x": ("Work", f"Elm {n}") for n in range(3)}


def test_chosen_calendars_alone_are_brought(synced: Synced, server: Radicale, relay: Relay) -> None:
    for name in ("Garden", "Home"):
        event(server.collection(name.lower(), name, "VCALENDAR"), 1)
    for path, words, name in (
        ("/", ["--folder", "Home"], "Home"),
        (f"/{USER}/garden/", [], "Garden"),
    ):
        synced.ok("source", "remove", "caldav", "--with-records")
        add(synced, relay, "caldav", path, *words)
        synced.ok("sync", "caldav")
        assert calendars(synced) == {f"{name}/1@x": (name, "Elm 1")}
    synced.ok("source", "remove", "caldav")
    add(synced, relay, "caldav", "/", "--folder", "Cellar")
    assert "Available: Garden, Home." in synced.run("sync", "caldav").stderr


@pytest.mark.parametrize("status", [403, 404, 405])
def test_a_server_without_calendars_at_its_root_is_asked_where_they_are(
    synced: Synced, server: Radicale, relay: Relay, status: int
) -> None:
    replies = {"/": Reply(status, b""), "/.well-known/caldav": Reply(301, b"", f"/{USER}/")}
    relay.change = lambda request, reply: replies.get(request.path, reply)
    work_of(server, 1)
    assert "caldav: 1 new." in synced.ok("sync", "caldav").stderr


def test_a_calendar_without_a_title_has_the_name_of_its_address(
    synced: Synced, server: Radicale, relay: Relay
) -> None:
    work_of(server, 1)
    relay.change = lambda request, reply: reply._replace(
        body=re.sub(rb"<displayname>.*?</displayname>", b"", reply.body)
    )
    synced.ok("sync", "caldav")
    assert calendars(synced) == {"0@x": ("office", "Elm 0")}


def test_a_new_title_of_a_calendar_is_brought(synced: Synced, server: Radicale) -> None:
    work = work_of(server, 3)
    synced.ok("sync", "caldav")
    properties = work / ".Radicale.props"
    properties.write_text(properties.read_text().replace("Work", "Job"), encoding="utf-8")
    assert "caldav: 3 new, 3 deleted." in synced.ok("sync", "caldav").stderr
    assert calendars(synced) == {f"Job/{n}@x": ("Job", f"Elm {n}") for n in range(3)}


def test_an_emptied_calendar_waits_for_the_owner(synced: Synced, server: Radicale) -> None:
    work = work_of(server, 3)
    synced.ok("sync", "caldav")
    for path in work.glob("*.ics"):
        path.unlink()
    assert synced.run("sync", "caldav").exit_code == WAITING
    assert len(calendars(synced)) == 3
    synced.ok("sync", "caldav", "--accept-deletions")
    assert calendars(synced) == {}


def test_an_event_that_cannot_be_read_is_reported_and_the_others_are_brought(
    synced: Synced, server: Radicale, relay: Relay
) -> None:
    work_of(server, 3)
    relay.change = lambda request, reply: reply._replace(
        body=re.sub(rb"(SUMMARY:Elm 1\S*\s+)END:VEVENT", rb"\1", reply.body)
    )
    shown = synced.ok("sync", "caldav").stderr
    assert "1 refused" in shown
    assert f"caldav: /{USER}/office/event%201%40x.ics line " in shown
    assert sorted(calendars(synced)) == ["Work/0@x", "Work/2@x"]


@pytest.mark.parametrize("method", ["PROPFIND", "REPORT"])
@pytest.mark.parametrize("body", ["", "<html/>", "{}", BOMB, "<multistatus xmlns='DAV:'/>"])
def test_a_server_that_lies_loses_nothing(
    synced: Synced, server: Radicale, relay: Relay, body: str, method: str
) -> None:
    work = work_of(server, 3)
    synced.ok("sync", "caldav")
    before = calendars(synced)
    event(work, 3)
    lie = Reply(207, body.encode())
    relay.change = lambda request, reply: lie if request.method == method else reply
    result = synced.run("sync", "caldav")
    if result.exit_code:
        assert calendars(synced) == before
    relay.change = lambda request, reply: reply
    synced.ok("sync", "caldav")
    assert calendars(synced) == {f"Work/{n}@x": ("Work", f"Elm {n}") for n in range(4)}


@pytest.mark.parametrize("how", ["a redirect", "a home"])
def test_another_server_never_gets_the_password(
    synced: Synced, server: Radicale, relay: Relay, how: str
) -> None:
    work_of(server, 1)
    with relay_to(server.port) as other:
        address = f"http://127.0.0.1:{other.port}/{USER}/"

        def lead_away(request: Request, reply: Reply) -> Reply:
            if how == "a redirect":
                return Reply(307, b"", f"{address}?token=x")
            return reply._replace(
                body=reply.body.replace(f">/{USER}/<".encode(), f">{address}<".encode())
            )

        relay.change = lead_away
        result = synced.run("sync", "caldav")
        assert result.exit_code == 1
        assert f"refers to 'http://127.0.0.1:{other.port}/'." in result.stderr
        assert other.requests == []


@pytest.mark.parametrize("method", ["PROPFIND", "REPORT"])
def test_a_server_that_hangs_or_drops_changes_nothing(
    synced: Synced, server: Radicale, relay: Relay, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    work = work_of(server, 3)
    synced.ok("sync", "caldav")
    before, end = synced.content(), threading.Event()
    event(work, 3)

    def hang(request: Request, reply: Reply) -> Reply:
        if request.method == method:
            end.wait()
            raise ConnectionAbortedError
        return reply

    relay.change = hang
    monkeypatch.setattr(web, "SECONDS", 1)
    assert "127.0.0.1 does not answer: timed out after 1 s." in synced.run("sync", "caldav").stderr
    end.set()
    assert synced.run("sync", "caldav").exit_code == 1
    assert synced.content() == before


@pytest.mark.slow
def test_a_round_that_is_killed_is_completed_by_the_next(synced: Synced, server: Radicale) -> None:
    """Each kill comes some commits later; in between, objects arrive, change, move and go."""
    work = server.collection("office", "Work", "VCALENDAR")
    home = server.collection("home", "Home", "VCALENDAR")
    friends = server.collection("friends", "Friends", "VADDRESSBOOK")
    others = server.collection("others", "Others", "VADDRESSBOOK")
    kills = 0
    for number, commits in enumerate((1, 2, 4, 7, 10, 13, 16, 19)):
        for add_to, elsewhere, write in ((work, home, event), (friends, others, card)):
            for n in range(4):
                write(add_to, 10 * number + n)
            if number:
                first = 10 * number - 10
                write(add_to, first, "Oak")
                moved = write(add_to, first + 1)
                moved.rename(elsewhere / moved.name)
                write(add_to, first + 2).unlink()
        kills += synced.killed(commits)
        synced.ok("sync")
        summaries = sorted(summary for _, summary in calendars(synced).values())
        assert summaries == sorted(server.read("office") + server.read("home")), commits
        people = sorted(names(synced).values())
        assert people == sorted(server.read("friends") + server.read("others")), commits
    assert kills > 4


def test_a_wrong_password_is_explained_and_shown_nowhere(synced: Synced, relay: Relay) -> None:
    secret = "wrong-and-secret"
    (synced.folder / "password").write_text(secret, encoding="utf-8")
    result = synced.run("sync")
    assert result.exit_code == 1 and "refused the sign-in" in result.stderr
    looked = synced.run("doctor").output
    assert "refused the sign-in" in looked
    assert secret not in result.output + synced.ok("source", "list").stdout + looked
    kept = [path for path in synced.folder.rglob("*") if path.is_file() and path.name != "password"]
    assert not [path for path in kept if secret.encode() in path.read_bytes()]
    assert PASSWORD.encode() not in b"".join(path.read_bytes() for path in kept)
