"""The reading pages over HTTP: what a session reads, and what never appears on a page."""

import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson
import pytest
from flask.testing import FlaskClient

from evidence.fold import fold
from service.pages import session_path
from service.pages.reading.visits import COOKIES
from tests.helpers import canaries, worlds
from tests.helpers.caller import Local
from tests.helpers.papers import Release
from tests.helpers.signin import begun_at, led_to
from tests.helpers.snapshots import DATA
from tests.helpers.worlds import BINARY, Connection, House, World
from tests.spec.reading_visits import check, entered, links, opened, page, text

SNAPSHOT = DATA / "papers" / "snapshot.db"
FORGED = "</p></mark><script>window.marked=1</script><img src=x onerror=alert(1)>\"'&\u202e"
LONG = "\n\n".join(f"Paragraph {number} about herons." for number in range(900))
DAYS = [f"2026-03-{day:02}T09:00:00Z" for day in range(1, 13)]


def mail() -> Connection:
    """A thread of twelve mails; the first is long, the second has an attachment."""
    fields = {
        **{"thread": worlds.text("thread"), "subject": worlds.text("primary-title")},
        **{
            "from": worlds.text("actor"),
            "to": {"type": "array"},
            "body": worlds.text("primary-text"),
        },
        **{"at": worlds.moment(), "file": {"type": "object"}},
    }
    query = {
        "exact_filters": ["thread"],
        "range_filters": {"at": worlds.TIMES},
        "search": {"lexical_fields": ["subject", "body", "from"]},
    }
    stream = worlds.stream("messages", fields, "at", query=query)
    rows = [
        worlds.row(
            *("messages", f"m/{number} é"),
            **{"thread": "t1", "subject": f"Re: letter {number}", "from": "Ada Brandt", "at": at},
            **{"to": ["Kenji Mori"], "body": LONG if number == 0 else f"Short body {number}."},
            **({"file": worlds.blob(BINARY, "image/png", "b1")} if number == 1 else {}),
        )
        for number, at in enumerate(DAYS)
    ]
    return Connection("post", "mail", "Post", (stream,), tuple(rows))


def others() -> Connection:
    """A chat message, a calendar entry, a payment, and a record in which every text is markup."""
    text, title = worlds.text("primary-text"), worlds.text("primary-title")
    amount = {"type": "number", "x_pdpp_role": "amount"}
    kinds: dict[str, dict[str, Any]] = {
        "chat": {"who": worlds.text("actor"), "text": text, "at": worlds.moment()},
        "events": {"summary": title, "text": text, "start": worlds.moment()},
        "payments": {"payee": title, "text": text, "amount": amount, "at": worlds.moment()},
        "forged": {"title": title, "who": worlds.text("actor"), "text": text, FORGED[4:20]: text},
    }
    rows = [
        worlds.row("chat", "c1", who="Noor Haddad", text="The heron has the key.", at=DAYS[0]),
        worlds.row("events", "e1", summary="Dentist", text="Bring the heron.", start=DAYS[1]),
        worlds.row("payments", "p1", payee="Heron rent", text="March", amount=812.5, at=DAYS[2]),
        worlds.row("forged", "f1", title=FORGED, who=FORGED, text=f"{FORGED} zebra" + FORGED * 200),
    ]
    streams = [
        worlds.stream(
            name, fields, query={"search": {"lexical_fields": [*list(fields)[:2], "text"]}}
        )
        for name, fields in kinds.items()
    ]
    return Connection("rest", "files", f"Rest {FORGED}", tuple(streams), tuple(rows))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    found = worlds.build(World((mail(), others())), tmp_path_factory.mktemp("reading"))
    found.environ["RUNG_PAPERS_DB"] = str(SNAPSHOT)
    return found


@pytest.fixture
def visit(house: House) -> FlaskClient:
    return entered(house.app, house.grant()[1])


def test_a_token_goes_into_a_cookie_that_scripts_and_other_sites_cannot_use(house: House) -> None:
    token = house.grant()[1]
    secure = house.application(RUNG_PUBLIC_URL="https://rung.example.com").test_client()
    client = house.app.test_client()
    form = {"token": token, "surface": "records", "to": "/read?q=heron"}
    answer = secure.post("/read", data=form)
    assert answer.status_code == 200 and led_to(answer.text) == "/read?q=heron"
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Secure-rung_records=")
    for word in ("HttpOnly", "SameSite=Lax", "Secure", f"Path={begun_at(answer.text)}"):
        assert word in cookie.split("; ")
    assert "Expires" not in cookie and "Max-Age" not in cookie and token not in str(answer.headers)
    plain = client.post("/read", data=form)
    assert "Secure" not in plain.headers["Set-Cookie"]
    for elsewhere in ("https://evil.example", "//evil.example", "/owner", "/read\r\nX-Y: 1"):
        found = client.post("/read", data={**form, "to": elsewhere}).text
        assert led_to(found) == "/read"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"}, 403),
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_no_other_site_puts_a_token_into_a_session(
    house: House, headers: dict[str, str], status: int
) -> None:
    form = {"token": house.grant()[1], "surface": "records"}
    for sent in (form, {"leave": ""}):
        answer = house.app.test_client().post("/read", data=sent, headers=headers)
        assert answer.status_code == status
        assert ("Set-Cookie" in answer.headers) is (status == 200 and sent is form)


def test_without_a_session_there_is_a_form_and_nothing_else(house: House) -> None:
    client = house.app.test_client()
    for path in ("/read", "/read?q=heron", "/read/post/messages:m0", "/read/blob?blob=b1"):
        answer = client.get(path)
        check(answer)
        assert answer.status_code == 200 and 'name="token"' in answer.text
        assert f'name="to" value="{path}"' in answer.text
        assert "Post" not in text(answer.text) and "Ada" not in answer.text
    for wrong in ("rung_unknown", "", "a b", "rung_owner_abc", "x" * 5_000, "é\r\nX: y"):
        refused = client.post("/read", data={"token": wrong, "to": "/read"})
        check(refused)
        assert refused.status_code == 403 and 'role="alert"' in refused.text
        assert not wrong or wrong not in refused.text
    path = session_path.new()
    client.set_cookie(COOKIES["records"], "forged", path=path)
    assert 'name="token"' in page(client, f"{path}/read", 403)


def test_a_session_is_a_token_of_its_own_surface_and_no_bearer(house: House) -> None:
    client = entered(house.app, house.grant()[1])
    cookie = client.get_cookie(COOKIES["records"], path=client.path)
    assert cookie is not None
    sealed = {"Authorization": f"Bearer {cookie.value}"}
    assert client.get("/v1/schema", headers=sealed).status_code == 401
    assert client.get("/v1/schema").status_code == 401, "a cookie opens pages only"
    closed = house.application(RUNG_PAPERS_TOKENS="a-token-of-the-library")
    other = closed.test_client()
    other.set_cookie(COOKIES["papers"], cookie.value, path=client.path)
    assert 'name="token"' in page(other, f"{client.path}/read/papers", 403)
    library = entered(closed, "a-token-of-the-library", "papers")
    assert "match" in text(page(library, "/read/papers", q="tides"))


def test_a_revoked_token_leads_back_to_the_form_and_so_does_leaving(house: House) -> None:
    grant_id, token = house.grant()
    client = entered(house.app, token)
    assert "Ada Brandt" in page(client, "/read", q="letter")
    house.revoke(grant_id)
    html = page(client, "/read", 403, q="letter")
    assert "revoked" in text(html) and 'name="token"' in html and "Ada" not in html
    client = entered(house.app, house.grant()[1])
    assert led_to(client.post("/read", data={"leave": "1"}).text) == "/read"
    assert 'name="token"' in page(client, "/read", q="letter")


@pytest.mark.parametrize(
    "query, kind, shown",
    [
        (
            "Short body 3",
            "Mail",
            ("Re: letter 3", "From Ada Brandt", "To Kenji Mori", "4 Mar 2026"),
        ),
        ("heron key", "Chat message", ("Chat message from Noor Haddad", "has the key")),
        ("dentist", "Calendar entry", ("Dentist", "When 2 Mar 2026, 09:00 UTC", "Bring the")),
        ("rent", "Table row", ("Heron rent", "amount 812.5", "3 Mar 2026")),
    ],
)
def test_a_record_is_laid_out_as_what_it_is(
    visit: FlaskClient, query: str, kind: str, shown: tuple[str, ...]
) -> None:
    found = text(opened(visit, query))
    for words in (kind, *shown):
        assert words in found, (words, found)


def test_a_result_has_title_person_date_source_and_the_marked_passage(visit: FlaskClient) -> None:
    html = page(visit, "/read", q="body 5", person="Ada", since="2026-03-06", until="2026-03-07")
    found = text(html)
    for words in (
        "1 record matches",
        "Re: letter 5",
        "Ada Brandt",
        "6 Mar 2026, 09:00 UTC",
        "Post",
    ):
        assert words in found, words
    assert re.search("<mark>body</mark>|<mark>Short body 5</mark>", html)
    assert "Re: letter" not in text(page(visit, "/read", q="body 5", source="rest"))
    assert "No record contains: qqqzzz" in text(page(visit, "/read", q="qqqzzz"))
    assert "date" in text(page(visit, "/read", 400, q="body", since="soon"))


def test_next_pages_lead_to_every_result(visit: FlaskClient) -> None:
    seen, path = list[str](), "/read?q=letter"
    while path:
        html = page(visit, path)
        seen += re.findall(r'class="hit" href="([^"?]+)', html)
        path = next((one for one in links(html) if "cursor=" in one), "")
    assert len(seen) == len(set(seen)) == 12


def test_a_long_text_is_read_part_by_part_and_match_by_match(visit: FlaskClient) -> None:
    path, parts = "/read/" + "post/messages:m%252F0%2520é", list[str]()
    while path:
        html = page(visit, path)
        prose = html[html.index('class="prose') : html.index("</div>", html.index('class="prose'))]
        parts.append(unescape(re.sub("<[^>]+>", "", prose.partition(">")[2])))
        path = next((unescape(one) for one in re.findall('href="([^"]+)">Next part', html)), "")
    assert "".join("".join(parts).split()) == "".join(LONG.split())
    html, places = opened(visit, '"Paragraph 700"'), list[str]()
    assert '<mark id="match">Paragraph 700</mark>' in html
    html = page(visit, "/read/post/messages:m%252F0%2520é", q="herons", match="899")
    for name, match in (("Next", "900"), ("Previous", "899")):
        pattern = f'href="([^"#]+)[^"]*">{name} match'
        html = page(visit, unescape(str(re.search(pattern, html)[1])))  # type: ignore[index]
        assert f"Match {match}" in html
        places += re.findall('<mark id="match">([^<]+)', html)
    assert places == ["herons", "herons"] and "Next match" in html


def test_the_thread_is_walked_from_record_to_record(visit: FlaskClient) -> None:
    path, seen = "/read/post/messages:m%252F0%2520é", ["Re: letter 0"]
    while True:
        html = page(visit, path)
        thread = html[html.index('id="thread"') : html.index("</ol>", html.index('id="thread"'))]
        after = thread.partition('aria-current="true"')[2]
        following = re.search(r'<a href="([^"]+)">([^<]+)', after)
        if following is None:
            break
        path = unescape(following[1])
        seen.append(following[2])
    assert seen == [f"Re: letter {number}" for number in range(12)]


def test_an_attachment_is_read_with_the_session_only(house: House, visit: FlaskClient) -> None:
    html = opened(visit, "Short body 1")
    path = next(one for one in links(html) if one.startswith("/read/blob"))
    answer = visit.get(path)
    assert answer.data == BINARY and answer.headers["Content-Type"] == "image/png"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"].endswith("; sandbox")
    assert answer.headers["Content-Disposition"] == "attachment"
    without = {"connection_id": "post", "stream": "messages", "fields": ["id", "subject"]}
    narrow = entered(house.app, house.grant(without)[1])
    assert narrow.get(path).status_code == 404


def test_the_calls_of_a_page_are_those_of_an_agent(house: House, visit: FlaskClient) -> None:
    for html in (page(visit, "/read", q="heron"), opened(visit, "dentist")):
        shown = re.findall(r"<pre[^>]*><code>(\w+) (\{.*?\})</code>", html)
        assert shown
        for tool, arguments in shown:
            result = house.api().mcp(tool, **orjson.loads(unescape(arguments)))
            assert not result.get("isError") and "eron" in str(result["content"])
        fills = [urlsplit(one).query for one in links(html) if one.startswith("/try?")]
        assert len(fills) == len(shown)
        filled = visit.get("/try?" + fills[0]).text
        assert re.search(r"<textarea[^>]*>[^<]*(heron|rest/events:e1)", filled)


def test_markup_in_records_stays_text_and_pages_stay_small(visit: FlaskClient) -> None:
    for path in ("/read", "/read?q=zebra", "/read/rest/forged:f1", "/read/rest/forged:f1?q=zebra"):
        html = page(visit, path)
        assert unescape(html).count("window.marked") > 0 and "<script>window" not in html
    for name in ("q", "person", "source", "sort", "cursor", "since", "words"):
        answer = visit.get(f"/read?{urlencode({'q': 'heron', name: FORGED[:60]})}")
        check(answer)
    for path in ("/read/<script>alert(1)</script>:x", "/read/paper?id=%3Cscript%3Ex"):
        check(visit.get(path))


def test_no_page_shows_what_is_outside_the_grant(tmp_path: Path) -> None:
    plan = canaries.plan()
    house = worlds.build(canaries.world_of(plan), tmp_path, RUNG_PAPERS_DB=str(SNAPSHOT))
    full = entered(house.app, house.grant()[1])
    row = house.api().rest("/v1/streams").body["data"][0]
    where = {"connection_id": row["connection_id"]}
    keys = house.api(where).rest(f"/v1/streams/{row['name']}").body["primary_key"]
    entry = {**where, "stream": row["name"], "fields": keys}
    narrow = entered(house.app, house.grant(entry)[1])
    allowed = canaries.words_in(page(narrow, "/read"))
    assert allowed < canaries.words_in(page(full, "/read")), "there is more to be seen"
    own = canaries.words_in(str(house.api(entry).mcp("query_records", stream=row["name"])))
    for path in _every_path(house, full):
        answer = narrow.get(path)
        assert answer.status_code in (200, 400, 403, 404), path
        shown = canaries.words_in(answer.text) - canaries.words_in(path)
        assert shown <= allowed | own, path


def _every_path(house: House, client: FlaskClient) -> list[str]:
    """The paths of all pages reachable with the whole grant."""
    waiting, known = ["/read", "/read?q=id"], set[str]()
    while waiting and len(known) < 60:
        path = waiting.pop().partition("#")[0]
        known.add(path)
        answer = client.get(path)
        if answer.mimetype == "text/html":
            found = (one.partition("#")[0] for one in links(answer.text))
            waiting += [one for one in found if one.startswith("/read") and one not in known]
    return sorted(known)


def test_a_paper_is_found_and_read_with_its_texts(house: House) -> None:
    client = house.app.test_client()
    start = page(client, "/read/papers")
    assert "Keywords" in text(start)
    assert "match" in text(page(client, next(o for o in links(start) if "q=year" in o)))
    html = opened_paper(client, "tides")
    found = text(html)
    assert "Outline" in found and "Authors" in found and "Summary" in found
    for name in ("text=source", "lang="):
        texts = [one for one in links(html) if name in one]
        for one in texts[:2]:
            assert 'class="prose' in page(client, one.partition("#")[0])


def test_the_markdown_of_a_paper_is_laid_out(house: House) -> None:
    client = house.app.test_client()
    html = opened_paper(client, "tides")
    assert '<h2 dir="auto">Abstract</h2>' in html and "<strong>Problem.</strong>" in html
    assert 'aria-current="true">Summary: simple' in html
    source = next(one for one in links(html) if "text=source" in one and "lang=" not in one)
    html = page(client, source.partition("#")[0])
    assert '<h3 dir="auto">Abstract</h3>' in html and '<pre tabindex="0">' in html


def test_a_part_that_begins_inside_code_is_code_until_its_fence(house: House) -> None:
    client, paper = house.app.test_client(), "8c12da2f15028ee9cd1444e4cebc2432"
    source = Release(DATA / "papers").source(paper)
    code = source.index("    return w @ x")
    html = page(client, f"/read/paper?id={paper}&text=source&offset={code}")
    assert '<pre tabindex="0">    return w @ x' in html and "htmltableonly" not in pre(html)
    after = source.index("htmltableonly")
    assert not pre(page(client, f"/read/paper?id={paper}&text=source&offset={after}"))


def test_every_match_in_a_paper_is_reached_by_links(house: House) -> None:
    client, paper = house.app.test_client(), "8c12da2f15028ee9cd1444e4cebc2432"
    source = Release(DATA / "papers").source(paper)
    html, found = page(client, f"/read/paper?id={paper}&q=and"), 0
    while True:
        found += html.count('class="hit"')
        more = [one for one in links(html) if "q=and" in one and "offset=" in one]
        if not more:
            break
        html = page(client, more[0].partition("#")[0])
    assert found == fold(source).split().count("and") > 10


def pre(html: str) -> str:
    """The code of a text."""
    prose = html.partition('class="prose')[2].partition("</section>")[0]
    return "".join(re.findall(r"<pre.*?</pre>", prose, re.DOTALL))


def opened_paper(client: FlaskClient, query: str) -> str:
    found = page(client, "/read/papers", q=query)
    href = unescape(str(re.search(r'class="hit" href="([^"]+)"', found)[1]))  # type: ignore[index]
    return page(client, href)


def test_the_url_of_a_hit_leads_a_browser_to_its_page(house: House, visit: FlaskClient) -> None:
    app = house.application(RUNG_PUBLIC_URL="https://rung.example.com")
    hits = Local(app, house.grant()[1]).ok("search", query="letter").structured["results"]
    accept = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for hit in hits:
        path = hit["url"].removeprefix("https://rung.example.com")
        assert visit.get(path).status_code == 401, "a program gets JSON"
        led = visit.get(path, headers=accept)
        assert led.status_code == 303
        assert f"<code>{hit['id']}</code>" in unescape(page(visit, led.headers["Location"]))
    signed = {**accept, "Authorization": f"Bearer {house.grant()[1]}"}
    assert visit.get(path, headers=signed).is_json
