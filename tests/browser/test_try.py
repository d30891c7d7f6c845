"""`/try`: searched and read to the end, by pointer and by keyboard; the token stays in the tab."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Locator

from tests.browser.site import FORGED, Site
from tests.browser.visitor import DARK_DESK, DARK_PHONE, DESK, PHONE, Visitor

EVERY_SCREEN = pytest.mark.parametrize("screen", [PHONE, DESK, DARK_PHONE, DARK_DESK], ids=str)
PHONE_AND_DESK = pytest.mark.parametrize("screen", [PHONE, DESK], ids=str)

LONG = "gmail-home/messages:m_0042"
QUERY = "quorum elm"
STEPS_LIMIT = 100


class Trial:
    """The page in the hands of a visitor, with a mouse or, where the screen has touch, a finger."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor, self.page, self.calls = visitor, visitor.page, 0

    def press(self, control: Locator) -> None:
        """Taps or clicks."""
        touch = self.page.evaluate("() => navigator.maxTouchPoints > 0")
        control.tap() if touch else control.click()

    def form(self) -> Locator:
        """The form on show."""
        return self.page.locator("form:visible")

    def call(self, **arguments: Any) -> None:
        """Fills the form on show, if there are arguments, and sends it."""
        if arguments:
            self.form().locator("textarea").fill(json.dumps(arguments))
        self.press(self.form().get_by_role("button", name="Call"))
        self.answered()

    def step(self, why: str) -> Locator:
        """The buttons of the continuations of this kind."""
        return self.page.locator(f'#rungs button[data-why="{why}"]')

    def follow(self, why: str) -> None:
        """Presses a continuation."""
        self.press(self.step(why).first)
        self.answered()

    def answered(self) -> None:
        """Waits for the answer of one more call."""
        self.calls += 1
        self.page.locator(f"#calls > li:nth-child({self.calls})").wait_for()

    def structured(self) -> Any:
        """`structuredContent` as it is shown."""
        return json.loads(self.page.locator("#structured").text_content() or "null")

    def windows(self, following: Any = None) -> Iterator[str]:
        """The text of this window and of each after it, as far as there is a next one."""
        for _ in range(STEPS_LIMIT):
            yield self.structured()["window"]["text"]
            if not self.step("next").count():
                return
            (following or self.follow)("next")
        raise AssertionError("there is a next window after the last one")


@pytest.fixture
def trial(visitor: Visitor, site: Site) -> Trial:
    """The page with a token typed in."""
    visitor.go("/try")
    visitor.page.get_by_label("Token for records").fill(site.token)
    return Trial(visitor)


def stored(site: Site) -> str:
    """The whole text of the long field, from REST."""
    address = f"{site.base}/v1/streams/messages/records/m_0042?connection_id=gmail-home&fields=body"
    headers = {"Authorization": f"Bearer {site.token}"}
    with urlopen(Request(address, headers=headers)) as answer:
        return str(json.load(answer)["data"]["body"])


@EVERY_SCREEN
def test_the_page_and_its_answers_have_no_serious_fault_and_fit(trial: Trial) -> None:
    visitor = trial.visitor
    assert not visitor.faults() and not visitor.overflows()
    trial.call(query=QUERY)
    assert not visitor.faults() and not visitor.overflows()


@PHONE_AND_DESK
def test_three_continuations_are_followed_by_button(trial: Trial, site: Site) -> None:
    """From what the form is filled with: it finds something in the demo."""
    trial.call()
    assert trial.structured()["results"][0]["id"] == LONG
    assert "quorum" in trial.page.locator("#content mark").all_inner_texts()
    whole = stored(site)
    for why in ("read", "next", "previous"):
        trial.follow(why)
        window = trial.structured()["window"]
        assert window["text"] == whole[window["start_chars"] : window["end_chars"]]
        shown = trial.page.locator("#content").text_content() or ""
        assert window["text"] in shown, "the text is shown too"
    assert not trial.visitor.places_of(site.token, in_tab=True)


@PHONE_AND_DESK
def test_a_long_field_is_read_to_its_end_by_button(trial: Trial, site: Site) -> None:
    trial.press(trial.page.get_by_role("link", name="read_record_field"))
    trial.call(id=LONG, field_path="body", limit_chars=16_384)
    assert "".join(trial.windows()) == stored(site)
    assert trial.structured()["window"]["has_more"] is False
    assert trial.calls > 10


@PHONE_AND_DESK
def test_the_same_is_done_by_keyboard_alone(visitor: Visitor, site: Site) -> None:
    trial = Trial(visitor)
    visitor.go("/try")
    visitor.tab_to("Token for records")
    visitor.type(site.token)
    visitor.tab_to("Arguments")
    visitor.press("Control+A")
    visitor.type(json.dumps({"query": QUERY}))
    visitor.press("Control+Enter")
    trial.answered()

    def follow(why: str) -> None:
        visitor.tab_to(why.capitalize())
        visitor.press("Enter")
        trial.answered()

    follow("read")
    start = trial.structured()["window"]["start_chars"]
    assert "".join(trial.windows(follow)) == stored(site)[start:]
    assert trial.calls > 10
    assert not visitor.places_of(site.token, in_tab=True)


def test_the_token_is_in_the_header_of_calls_and_nowhere_else(trial: Trial, site: Site) -> None:
    trial.call(query=QUERY)
    trial.follow("read")
    visitor = trial.visitor
    carried = [
        request.url
        for request in visitor.requests
        if request.all_headers().get("authorization") == f"Bearer {site.token}"
    ]
    assert carried == [f"{site.base}/mcp"] * 2
    visitor.page.go_back()
    assert not visitor.places_of(site.token, in_tab=True)
    assert site.token not in visitor.page.content()


def test_the_token_stays_in_the_tab_until_it_is_refused(trial: Trial, site: Site) -> None:
    trial.call(query=QUERY)
    page = trial.page
    page.reload()
    field = page.get_by_label("Token for records")
    assert field.input_value() == site.token
    other = page.context.new_page()
    other.goto(f"{site.base}/try")
    assert other.get_by_label("Token for records").input_value() == ""
    other.close()
    field.fill("rung_of-nobody")
    again = Trial(trial.visitor)
    again.call(query=QUERY)
    trial.visitor.complaints.clear()  # the browser itself says that an answer was 401
    page.reload()
    assert page.get_by_label("Token for records").input_value() == ""


def test_hits_come_first_and_json_on_demand(trial: Trial) -> None:
    trial.call(query=QUERY)
    hit, text, json_ = (
        trial.page.locator(place).bounding_box() for place in ("#rungs", "#content", "#json")
    )
    assert hit and text and json_ and hit["y"] < text["y"] < json_["y"]
    assert not trial.page.locator("#structured").is_visible()
    trial.press(trial.page.locator("#json > summary"))
    assert trial.page.locator("#structured").is_visible()


@PHONE_AND_DESK
def test_what_records_say_is_shown_as_text(visitor: Visitor, site: Site) -> None:
    trial = Trial(visitor)
    visitor.go("/try")
    visitor.page.get_by_label("Token for records").fill(site.forged_token)
    trial.call(query="zebra")
    for why in ("read", "fetch"):
        trial.follow(why)
        assert FORGED in (trial.page.locator("#content").text_content() or "").replace('\\"', '"')
        assert not trial.page.locator("#answer :is(img, script, a)").count()
        assert trial.page.evaluate("() => window.marked === undefined")


def test_papers_are_asked_without_a_token(visitor: Visitor) -> None:
    trial = Trial(visitor)
    visitor.go("/try?tool=search_papers")
    assert not visitor.page.get_by_label("Token for").is_visible()
    trial.call(query="tides")
    assert "What Makes the Tides" in trial.page.locator("#content").inner_text()
    sent = [request.all_headers() for request in visitor.requests if request.method == "POST"]
    assert sent and not [headers for headers in sent if "authorization" in headers]


def test_a_token_that_is_refused_is_said_with_what_to_do(visitor: Visitor) -> None:
    trial = Trial(visitor)
    visitor.go("/try")
    visitor.page.get_by_label("Token for records").fill("rung_of-nobody")
    trial.call(query=QUERY)
    text = trial.page.locator("#answer").inner_text()
    assert "401" in text and "refused" in text and "token" in text
    assert visitor.complaints and all("401" in said for said in visitor.complaints)
    visitor.complaints.clear()  # the browser itself says that an answer was 401


def test_a_link_to_a_call_brings_it_and_makes_none(trial: Trial) -> None:
    trial.call(query=QUERY)
    trial.visitor.requests.clear()
    trial.page.goto("about:blank")
    trial.page.go_back()
    assert json.loads(trial.form().locator("textarea").input_value()) == {"query": QUERY}
    assert not [request for request in trial.visitor.requests if request.method == "POST"]


@pytest.mark.parametrize("typed", ['{"query": ', "[1]", "null"])
def test_arguments_that_are_no_object_are_not_sent(trial: Trial, typed: str) -> None:
    trial.form().locator("textarea").fill(typed)
    trial.press(trial.form().get_by_role("button", name="Call"))
    assert "JSON" in trial.form().locator(".fault").inner_text()
    assert not [request for request in trial.visitor.requests if request.method == "POST"]


@pytest.mark.parametrize("body", ["null", "[]", "7", '{"error": null}'])
def test_json_that_is_no_answer_is_said_too(visitor: Visitor, body: str) -> None:
    visitor.page.route("**/mcp/papers", lambda route: route.fulfill(status=200, body=body))
    visitor.go("/try?tool=search_papers")
    trial = Trial(visitor)
    trial.call(query="tides")
    assert "The answer has no result." in visitor.page.locator("#refusal").inner_text()
