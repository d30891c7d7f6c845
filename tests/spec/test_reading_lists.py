"""Lists of records at `/read`: without words, newest first, inside the grant."""

import re
from html import unescape

import orjson
import pytest
from flask.testing import FlaskClient

from tests.helpers import worlds
from tests.helpers.worlds import Connection, House, World
from tests.spec.reading_visits import entered, links, page, text


def mail(name: str, minute: int, count: int) -> Connection:
    fields = {
        "subject": worlds.text("primary-title"),
        "from": worlds.text("actor"),
        "body": worlds.text("primary-text"),
        "at": worlds.moment() | ({"x_pdpp_type": "timestamp"} if name == "home" else {}),
    }
    query = {
        "range_filters": {"at": worlds.TIMES},
        "search": {"lexical_fields": ["subject", "from", "body"]},
    }
    rows = [
        worlds.row(
            "messages",
            f"{number:02}",
            **{
                "subject": f"{name} {number:02}",
                "body": "Text",
                "at": f"2026-03-{day:02}T09:{minute}:00+02:00",
            },
            **{"from": "Ada Brandt" if number % 2 else "Noor Haddad"},
        )
        for number, day in enumerate(range(1, count + 1))
    ]
    stream = worlds.stream("messages", fields, "at", query=query)
    return Connection(name, "mail", name.title(), (stream,), (*rows,))


def bank() -> Connection:
    """Payments with dates, more of one day than a page has, and contacts without any time."""
    fields = {
        "payee": worlds.text("actor"),
        "on": {"type": "string", "format": "date", "x_pdpp_role": "event-time"},
    }
    query = {
        "exact_filters": ["payee"],
        "range_filters": {"on": worlds.TIMES},
        "search": {"lexical_fields": []},
    }
    payments = worlds.stream("payments", fields, "on", query=query)
    contacts = worlds.stream("contacts", {"name": worlds.text("primary-title")})
    rows = [
        worlds.row("payments", f"{n:02}", payee="Shop", on="2026-05-01" if n < 30 else "2026-03-02")
        for n in range(31)
    ]
    rows += [worlds.row("payments", "rent", payee="Rent", on="2026-03-05")]
    rows += [worlds.row("contacts", f"{n:02}", name=f"Contact {n:02}") for n in range(40)]
    return Connection("bank", "bank", "Bank", (payments, contacts), (*rows,))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    world = World((mail("home", 10, 28), mail("work", 20, 28), bank()))
    return worlds.build(world, tmp_path_factory.mktemp("listed"))


@pytest.fixture
def visit(house: House) -> FlaskClient:
    return entered(house.app, house.grant()[1])


def walked(client: FlaskClient, **query: str) -> list[str]:
    """The titles on all pages of a list."""
    html, titles = page(client, "/read", **query), list[str]()
    while True:
        titles += [unescape(one) for one in re.findall(r'class="hit" href="[^"]*">([^<]+)', html)]
        following = re.search('<a [^>]*rel="next"[^>]*>', html)
        if following is None:
            return titles
        html = page(client, links(following[0])[0])


def test_a_stream_is_a_link_to_its_records_newest_first(visit: FlaskClient) -> None:
    paths = [one for one in links(page(visit, "/read")) if "stream=" in one]
    assert len(paths) == 4
    path = next(one for one in paths if "source=work" in one)
    html = page(visit, path)
    for shown in ("work 27", "Ada Brandt", "28 Mar 2026, 09:20 UTC+02:00", "Work · messages"):
        assert shown in text(html), shown
    assert "Times are in each record" in html
    assert walked(visit, stream="messages", source="work") == [
        f"work {number:02}" for number in reversed(range(28))
    ]
    contacts = walked(visit, stream="contacts")
    assert contacts == sorted(contacts) and len({*contacts}) == 40, "without times too"
    pages = [page(visit, "/read", stream=name) for name in ("contacts", "messages")]
    assert ">By id, <span" in pages[0] and ">Newest first, <span" in pages[1]


def test_dates_without_words_merge_all_streams(visit: FlaskClient) -> None:
    titles = walked(visit, since="2026-03-02", until="2026-03-06")
    assert titles == [
        *("work 04", "home 04", "Rent", "work 03", "home 03", "work 02", "home 02", "work 01"),
        *("home 01", "Shop"),
    ]


def test_a_kind_of_two_sources_is_merged_page_by_page(visit: FlaskClient) -> None:
    expected = [
        f"{name} {number:02}" for number in reversed(range(28)) for name in ("work", "home")
    ]
    assert walked(visit, stream="messages") == expected
    assert (
        walked(visit, stream="messages", since="2026-03-10", until="2026-03-12")
        == expected[-22:-18]
    )


def test_more_records_of_one_time_than_a_page_has_are_announced(visit: FlaskClient) -> None:
    html = page(visit, "/read", since="2026-05-01")
    assert "More records share this time" in html
    assert len(walked(visit, since="2026-05-01", stream="payments", source="bank")) == 30


def test_a_person_narrows_a_kind(visit: FlaskClient) -> None:
    titles = walked(visit, stream="messages", source="home", person="ada")
    assert titles == [f"home {number:02}" for number in reversed(range(1, 28, 2))]
    assert walked(visit, stream="payments", person="Rent") == ["Rent"]
    dated = walked(visit, stream="messages", person="Noor", since="2026-03-27")
    assert dated == ["work 26", "home 26"]
    assert "Shop" not in text(page(visit, "/read", q="text", stream="messages"))


def test_a_list_shows_nothing_outside_the_grant(house: House) -> None:
    own = {"connection_id": "home", "stream": "messages", "fields": ["id", "subject", "at"]}
    client = entered(house.app, house.grant(own)[1])
    for query in ({"since": "2026-01-01"}, {"stream": "messages"}, {"source": "home"}):
        html = page(client, "/read", **query)
        assert "home 27" in html
        for hidden in ("work", "bank", "Ada", "payments", "contacts"):
            assert hidden not in text(html), (query, hidden)
    for query, status in (({"stream": "payments"}, 403), ({"source": "bank"}, 404)):
        assert "There is nothing here" in page(client, "/read", status, **query)
        unknown = {name: "unknown" for name in query}
        assert text(page(client, "/read", status, **unknown)) == text(
            page(client, "/read", status, **query)
        )


@pytest.mark.parametrize(
    "query",
    [
        {"since": "soon"},
        {"stream": "contacts", "since": "2026-01-01"},
        {"before": "x", "source": "home"},
    ],
)
def test_what_cannot_be_listed_is_refused_in_words(
    visit: FlaskClient, query: dict[str, str]
) -> None:
    assert "date" in text(page(visit, "/read", 400, **query))


def test_the_call_of_a_list_returns_its_records(house: House, visit: FlaskClient) -> None:
    html = page(visit, "/read", stream="messages", source="home", since="2026-03-20")
    found = re.search(r"<code>query_records (\{.*?\})</code>", html)
    assert found
    result = house.api().mcp("query_records", **orjson.loads(unescape(found[1])))
    assert "home 27" in str(result["content"]) and "home 18" not in str(result["content"])
