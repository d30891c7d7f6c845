"""`/` and `/connect`: read, copied from and filled in, on a phone and at a desk, light and dark."""

import re

import pytest

from tests.browser.site import Site
from tests.browser.visitor import DARK_DESK, DARK_PHONE, DESK, PHONE, Visitor

EVERY_SCREEN = pytest.mark.parametrize("screen", [PHONE, DESK, DARK_PHONE, DARK_DESK], ids=str)
PHONE_AND_DESK = pytest.mark.parametrize("screen", [PHONE, DESK], ids=str)
PAGES = ["/", "/connect", "/connect?for=papers"]
CLIENTS = [
    *("Claude", "Claude Code", "ChatGPT", "Cursor", "VS Code", "Codex", "Gemini CLI"),
    *("Windsurf", "Zed", "Cline", "LM Studio", "JetBrains AI Assistant", "Goose"),
    *("mcp-remote", "curl"),
]


def copied(visitor: Visitor) -> str:
    """What the clipboard holds."""
    return str(visitor.page.evaluate("() => navigator.clipboard.readText()"))


@EVERY_SCREEN
@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_serious_fault_and_fits_the_screen(visitor: Visitor, path: str) -> None:
    visitor.go(path)
    assert visitor.page.locator("h1").count() == 1
    assert not visitor.faults()
    assert not visitor.overflows()


@EVERY_SCREEN
def test_an_unknown_address_has_a_page_without_fault_that_leads_on(visitor: Visitor) -> None:
    visitor.go("/nothing")
    assert not visitor.faults() and not visitor.overflows()
    visitor.page.get_by_role("link", name="Connect a client").click()
    visitor.page.wait_for_url("**/connect")
    assert all("404" in said for said in visitor.complaints)
    visitor.complaints.clear()


@pytest.mark.parametrize("path", PAGES)
def test_headings_go_down_by_one_level(visitor: Visitor, path: str) -> None:
    visitor.go(path)
    names = visitor.page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(h => h.tagName)")
    levels = [int(name[1]) for name in names]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:]))


@pytest.mark.parametrize("path", PAGES)
def test_every_link_of_a_page_leads_somewhere(visitor: Visitor, path: str) -> None:
    visitor.go(path)
    targets = visitor.page.locator("a").evaluate_all("all => all.map(a => a.href)")
    assert targets
    for target in {one for one in targets if not one.startswith(("cursor:", "vscode:"))}:
        address, _, fragment = target.partition("#")
        assert address.startswith(visitor.base), target
        answer = visitor.page.request.get(address, headers={"Accept": "text/html"})
        assert answer.ok, target
        if fragment:
            assert f'id="{fragment}"' in answer.text(), target


def test_the_front_page_says_what_is_there_and_that_it_is_well(visitor: Visitor) -> None:
    visitor.go("/")
    text = visitor.page.locator("main").inner_text()
    for said in ("Ready", "Records", "You need a client token", "13 papers", f"{visitor.base}/mcp"):
        assert said in text
    assert "3,238" not in text and "Work mail" not in text, "a token guards these"


@PHONE_AND_DESK
def test_each_client_has_lines_and_says_whether_it_sends_a_bearer(visitor: Visitor) -> None:
    visitor.go("/connect")
    assert visitor.page.locator(".client h3").all_inner_texts() == CLIENTS
    rows = visitor.page.locator(".clients tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == CLIENTS
    assert {row.split("\t")[1] for row in rows} == {"Yes", "No"}
    claude_code = visitor.page.locator(".client", has=visitor.page.locator("#claude-code"))
    assert f"claude mcp add --transport http rung {visitor.base}/mcp" in claude_code.inner_text()
    assert "rung doctor" in visitor.page.locator("main").inner_text()


def test_the_papers_have_lines_of_their_own_without_a_token(visitor: Visitor) -> None:
    visitor.go("/connect")
    visitor.page.get_by_role("link", name="Research papers").click()
    visitor.page.wait_for_url("**/connect?for=papers")
    text = visitor.page.locator("main").inner_text()
    assert f"{visitor.base}/mcp/papers" in text
    assert "Authorization" not in text and visitor.page.locator("#token").count() == 0
    chatgpt = visitor.page.locator(".client", has=visitor.page.locator("#chatgpt"))
    assert f"{visitor.base}/mcp/papers" in chatgpt.inner_text()


@PHONE_AND_DESK
def test_a_token_fills_the_lines_and_goes_nowhere_else(visitor: Visitor, site: Site) -> None:
    visitor.go("/connect")
    visitor.tab_to("Insert your token into the examples")
    visitor.type(site.token)
    lines = visitor.page.locator("pre").all_inner_texts()
    assert not [line for line in lines if "YOUR_TOKEN" in line]
    assert (
        sum(site.token in line for line in lines) >= len(CLIENTS) - 1
    )  # all but ChatGPT and VS Code
    visitor.press("Enter")
    assert visitor.page.url == f"{visitor.base}/connect"
    assert not visitor.places_of(site.token)
    visitor.page.reload(wait_until="load")
    assert site.token not in visitor.page.content()
    assert visitor.page.locator("#token").input_value() == ""


def test_what_is_no_token_stays_out_of_the_lines(visitor: Visitor) -> None:
    visitor.go("/connect")
    visitor.page.locator("#token").fill("x'; rm -rf ~; echo '")
    assert "not a bearer token" in visitor.page.locator("#token-state").inner_text()
    assert "rm -rf" not in "".join(visitor.page.locator("pre").all_inner_texts())


def test_a_line_is_copied_by_keyboard_and_said_so(visitor: Visitor, site: Site) -> None:
    visitor.go("/connect")
    visitor.page.locator("#token").fill(site.token)
    visitor.tab_to("Copy Claude Code: Command")
    visitor.press("Enter")
    visitor.page.get_by_role("status").get_by_text("Copied.").wait_for(state="attached")
    assert re.fullmatch(
        f"claude mcp add --transport http rung {visitor.base}/mcp"
        f" --header .Authorization: Bearer {site.token}.",
        copied(visitor),
    )


@PHONE_AND_DESK
def test_the_front_page_leads_on_by_keyboard(visitor: Visitor) -> None:
    visitor.go("/")
    visitor.press("Tab")
    assert visitor.focused() == "Skip to content"
    visitor.tab_to("Configure your client")
    visitor.press("Enter")
    visitor.page.wait_for_url("**/connect")
