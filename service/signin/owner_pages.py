"""`/owner`: shows the store and its grants, creates and revokes grants, and signs in the owner."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from flask import Blueprint, Response, request

from evidence.errors import EvidenceError, InvalidRequest, RateLimited, Unauthenticated
from evidence.errors import Unavailable
from service.access.guard import check_form
from service.access.registry import Grant, StreamGrant
from evidence.times import moment
from service.signin.owner_site import ASSERTION, LOGIN, LOGOUT, OWNER, OwnerSite

NEW, REVOKE, PASSKEY, READ = "/owner/grant", "/owner/revoke", "/owner/passkey", "/read"
LABEL_CHARS = 60
DATE_CHARS = 10
FIELDS_MAX, DAYS_MAX = 4, 7


@dataclass(frozen=True, slots=True)
class Shared:
    """A grant with its state, its scope in words, the name of its client, if any, and its number
    of requests by day, newest first."""

    grant: Grant
    state: str
    scope: tuple[str, ...]
    client: str | None
    read: tuple[tuple[str, int], ...]


def add(routes: Blueprint, site: OwnerSite) -> None:
    """Adds the pages."""
    for path, name, view, methods in (
        (OWNER, "owner", _overview, ["GET"]),
        (NEW, "grant", _new, ["GET", "POST"]),
        (REVOKE, "owner_revoke", _revoke, ["GET", "POST"]),
        (PASSKEY, "passkey", _passkey, ["GET", "POST"]),
        (LOGOUT, "logout", _logout, ["POST"]),
    ):
        routes.add_url_rule(path, name, site.owned(partial(view, site)), methods=methods)
    login = site.view(lambda: _login(site))
    routes.add_url_rule(LOGIN, "login", login, methods=["GET", "POST"])


def _login(site: OwnerSite) -> Response:
    """GET shows a button, because a link preview must not use up the code. POST signs in."""
    onward = request.values.get("onward", OWNER)
    if not (onward.startswith((OWNER, READ)) and onward.isprintable()):
        onward = OWNER
    if request.method == "GET":
        return site.sign_in_page(request.args.get("code", ""), onward)
    check_form(request.environ, site.sessions.base)
    begun = partial(site.layout.begun, to=onward)
    try:
        if request.form.get(ASSERTION):
            return site.sessions.sign_in_with_passkey(begun)
        return site.sessions.sign_in(request.form.get("code", ""), begun)
    except EvidenceError as error:
        return site.sign_in_page(onward=onward, error=error)


def _logout(site: OwnerSite, session: str) -> Response:
    site.sessions.check_form(session, OWNER)
    return site.sessions.sign_out(session, site.layout.ended("/"))


def _overview(site: OwnerSite, session: str, error: EvidenceError | None = None) -> Response:
    clients, read = site.signins.clients(), dict[str, Counter[str]]()
    activity = site.store.activity
    now = activity.now()
    for use in activity.uses():
        read.setdefault(use.grant_id, Counter())[use.day] += use.requests
    shared = []
    for entry in reversed(site.store.grants()):
        id, state = entry.grant_id, entry.state(now)
        shared.append(_shared(entry, state, clients.get(id), read.get(id, Counter())))
    token, passkeys = site.sessions.form(session, OWNER), site.sessions.passkeys
    return site.page(
        "owner.html",
        error=error,
        streams=site.store.overview(),
        vector_share=site.store.vector_share(),
        sources=[source.described(now) for source in site.store.source_states.all(now)],
        active=[share for share in shared if share.state == "active"],
        ended=[share for share in shared if share.state != "active"],
        token=token,
        passkeys=passkeys.listed(),
        creation=passkeys.creation(token) if passkeys.host else None,
        passkey=site.sessions.challenge(token),
        new=NEW,
        revoke=REVOKE,
        logout=LOGOUT,
    )


def _shared(entry: Grant, state: str, client: dict[str, str] | None, read: Counter[str]) -> Shared:
    scope = tuple(map(_in_words, entry.streams)) + (("research papers",) if entry.papers else ())
    host = urlsplit(client["client_id"]).hostname if client else None
    name = f"“{client['name']}” ({client['place']}, {host or 'unverified'})" if client else None
    days = tuple(sorted(read.items(), reverse=True)[:DAYS_MAX])
    return Shared(entry, state, scope, name, days)


def _in_words(stream: StreamGrant) -> str:
    """Describes one stream of a grant for the owner."""
    names = ", ".join(stream.fields[:FIELDS_MAX])
    remaining = len(stream.fields) - FIELDS_MAX
    fields = f"{names} and {remaining} more" if remaining > 0 else names
    words = [f"{stream.connection_id}/{stream.stream}", fields]
    if stream.since is not None:
        words.append(f"from {moment(stream.since)[:DATE_CHARS]}")
    if stream.until is not None:
        words.append(f"before {moment(stream.until)[:DATE_CHARS]}")
    if stream.resources is not None:
        words.append(f"records: {len(stream.resources)}")
    return "; ".join(words)


def _new(site: OwnerSite, session: str) -> Response:
    """Shows the form for a grant without a client, then its token, once."""
    choices, error, proven, sessions = site.choices(), None, False, site.sessions
    if request.method == "POST":
        proven = sessions.check_form(session, NEW)
        choices = site.sent(choices)
        label = request.form.get("label", "").strip()[:LABEL_CHARS]
        try:
            if not proven:
                with sessions.proof():
                    pass
                proven = True
            with site.granting(choices, label or "created at /owner") as (_, token):
                pass
            return site.page("granted.html", token=token, label=label)
        except EvidenceError as refused:
            error = refused
    form = sessions.form(session, NEW, proven=proven)
    return site.page(
        "new_grant.html",
        error=error,
        token=form,
        proven=proven,
        passkey=sessions.challenge(form),
        label=request.form.get("label", ""),
        **site.form(choices),
    )


def _revoke(site: OwnerSite, session: str) -> Response:
    """Revokes a grant. GET is the page that was shown after it, loaded again."""
    if request.method == "GET":
        return _overview(site, session)
    site.sessions.check_form(session, OWNER)
    try:
        site.revoke(request.form.get("grant", ""))
    except Unavailable as error:
        return _overview(site, session, error)
    return _overview(site, session)


def _passkey(site: OwnerSite, session: str) -> Response:
    """Adds the passkey that the browser created, or removes one. GET as for `_revoke`."""
    if request.method == "GET":
        return _overview(site, session)
    site.sessions.check_form(session, OWNER)
    form, passkeys = request.form, site.sessions.passkeys
    try:
        with site.sessions.proof() as entries:
            if "remove" in form:
                passkeys.remove(entries, form["remove"])
            else:
                passkeys.add(
                    entries, form["form"], form.get("credential", ""), form.get("name", "")
                )
    except (InvalidRequest, Unauthenticated, RateLimited) as error:
        return _overview(site, session, error)
    return _overview(site, session)
