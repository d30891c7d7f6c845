"""`/owner`: what is in the store, who may read what, and how to end it; and signing in."""

from collections import Counter
from dataclasses import dataclass

from flask import Blueprint, Response, request

from evidence.errors import EvidenceError, InvalidRequest, Unavailable
from service.access.grants import GrantEntry
from service.access.grants import StreamGrant
from service.records.values import moment
from service.signin.desk import LOGIN, LOGOUT, OWNER, Desk, see_other

NEW, REVOKE = "/owner/grant", "/owner/revoke"
LABEL_CHARS = 60
DATE_CHARS = 10
FIELDS_NAMED, DAYS_SHOWN = 4, 7


@dataclass(frozen=True, slots=True)
class Shared:
    """A grant with its state, its scope in words, the name of its client, if it has one, and what
    it read: the number of requests by day, the newest first."""

    grant: GrantEntry
    state: str
    scope: tuple[str, ...]
    client: str | None
    read: tuple[tuple[str, int], ...]


def add(routes: Blueprint, desk: Desk) -> None:
    """Adds the pages."""
    both = ["GET", "POST"]
    routes.add_url_rule(OWNER, "owner", desk.owned(lambda session: _overview(desk, session)))
    new = desk.owned(lambda session: _new(desk, session))
    routes.add_url_rule(NEW, "grant", new, methods=both)
    revoke = desk.owned(lambda session: _revoke(desk, session))
    routes.add_url_rule(REVOKE, "owner_revoke", revoke, methods=["POST"])
    logout = desk.owned(lambda session: _logout(desk, session))
    routes.add_url_rule(LOGOUT, "logout", logout, methods=["POST"])
    routes.add_url_rule(LOGIN, "login", desk.view(lambda: _login(desk)), methods=both)


def _login(desk: Desk) -> Response:
    """GET shows a button, because previews of links must not use the code; POST signs in."""
    onward = request.values.get("onward", OWNER)
    if not (onward.startswith(("/authorize?", OWNER)) and onward.isprintable()):
        onward = OWNER
    if request.method == "GET":
        return desk.sign_in_page(request.args.get("code", ""), onward)
    desk.sessions.check_same_site()
    try:
        return desk.sessions.sign_in(request.form.get("code", ""), see_other(onward))
    except EvidenceError as error:
        return desk.page("sign_in.html", error=error, code="", onward=onward)


def _logout(desk: Desk, session: str) -> Response:
    desk.sessions.check_form(session, OWNER)
    return desk.sessions.sign_out(session, see_other("/"))


def _overview(desk: Desk, session: str, error: EvidenceError | None = None) -> Response:
    clients, read = desk.signins.clients(), dict[str, Counter[str]]()
    for use in desk.store.activity.uses():
        read.setdefault(use.grant_id, Counter())[use.day] += use.requests
    shared = [
        _shared(entry, clients.get(entry.grant_id), read.get(entry.grant_id, Counter()))
        for entry in desk.store.grants()
    ]
    return desk.page(
        "owner.html",
        error=error,
        streams=desk.store.overview(),
        active=[one for one in reversed(shared) if one.state == "active"],
        ended=[one for one in reversed(shared) if one.state != "active"],
        token=desk.sessions.form(session, OWNER),
        new=NEW,
        revoke=REVOKE,
        logout=LOGOUT,
    )


def _shared(entry: GrantEntry, client: dict[str, str] | None, read: Counter[str]) -> Shared:
    scope = tuple(map(_in_words, entry.streams)) + (("research papers",) if entry.papers else ())
    name = f"{client['name']} ({client['place']}, unverified)" if client else None
    days = tuple(sorted(read.items(), reverse=True)[:DAYS_SHOWN])
    return Shared(entry, entry.state(), scope, name, days)


def _in_words(stream: StreamGrant) -> str:
    """One stream of a grant, as its owner reads it."""
    named = ", ".join(stream.fields[:FIELDS_NAMED])
    more = len(stream.fields) - FIELDS_NAMED
    fields = f"{named} and {more} more fields" if more > 0 else named
    words = [f"{stream.connection_id}/{stream.stream}", fields]
    if stream.since is not None:
        words.append(f"from {moment(stream.since)[:DATE_CHARS]}")
    if stream.until is not None:
        words.append(f"before {moment(stream.until)[:DATE_CHARS]}")
    if stream.resources is not None:
        words.append(f"{len(stream.resources)} records")
    return "; ".join(words)


def _new(desk: Desk, session: str) -> Response:
    """The form for a grant without a client, and its token, shown once."""
    choices, error = desk.choices(), None
    if request.method == "POST":
        desk.sessions.check_form(session, NEW)
        choices = desk.sent(choices)
        label = request.form.get("label", "").strip()[:LABEL_CHARS]
        try:
            _, token = desk.grant(choices, label or "made on /owner")
            return desk.page("granted.html", token=token, label=label)
        except (InvalidRequest, Unavailable) as refused:
            error = refused
    return desk.page(
        "new_grant.html",
        error=error,
        token=desk.sessions.form(session, NEW),
        label=request.form.get("label", ""),
        **desk.form(choices),
    )


def _revoke(desk: Desk, session: str) -> Response:
    desk.sessions.check_form(session, OWNER)
    try:
        desk.revoke(request.form.get("grant", ""))
    except Unavailable as error:
        return _overview(desk, session, error)
    return see_other(OWNER)
