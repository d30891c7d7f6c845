"""A person at a browser: what they see, press and type, and everything the page does meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
#: How many times Tab is pressed before something counts as out of reach by keyboard.
TABS = 200
SERIOUS = ("serious", "critical")

#: Runs before the page's own code: a refusal of the content-security policy becomes an error.
WATCH = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy: ${event.violatedDirective} refused ${event.blockedURI}`);
});
"""
STORED = """
() => JSON.stringify([{...localStorage}, document.cookie, window.name, history.state])
"""
TAB = "() => JSON.stringify({...sessionStorage})"
FOCUSED = r"""
() => {
  const found = document.activeElement;
  const label = found.labels && found.labels[0] ? found.labels[0].innerText : "";
  const said = found.getAttribute("aria-label") || label || found.innerText || found.id || "";
  return found === document.body ? "" : said.trim().replace(/\s+/g, " ").slice(0, 80);
}
"""
WIDER_THAN_ITS_WINDOW = """
() => document.documentElement.scrollWidth > document.documentElement.clientWidth
"""


@dataclass(frozen=True)
class Screen:
    """A window somebody reads in."""

    name: str
    width: int
    height: int
    touch: bool = False
    scheme: str = "light"
    scale: float = 1

    def __str__(self) -> str:
        return f"{self.name}-{self.scheme}"


PHONE = Screen("phone", 360, 800, touch=True)
DESK = Screen("desk", 1440, 900)
DARK_PHONE = Screen("phone", 360, 800, touch=True, scheme="dark")
DARK_DESK = Screen("desk", 1440, 900, scheme="dark")


@dataclass
class Visitor:
    """A page in a window of its own, and what it asked for and complained of.

    `complaints` are console errors, uncaught exceptions, refusals of the content-security policy,
    and answers a page should not get. A test that provokes one takes it out of the list.
    """

    base: str
    page: Page
    requests: list[Request] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        """Opens a page of the site and waits until its own code has run."""
        self.page.goto(self.base + path, wait_until="load")

    def focused(self) -> str:
        """What has the focus, by its label or its text."""
        return str(self.page.evaluate(FOCUSED))

    def tab_to(self, label: str, *, back: bool = False) -> None:
        """Presses Tab until what is labelled so has the focus."""
        seen = []
        for _ in range(TABS):
            self.page.keyboard.press("Shift+Tab" if back else "Tab")
            seen.append(self.focused())
            if seen[-1].startswith(label):
                return
        raise AssertionError(f"Tab does not reach {label!r}, only {list(dict.fromkeys(seen))}")

    def type(self, text: str) -> None:
        """Types into what has the focus."""
        self.page.keyboard.type(text)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def overflows(self) -> bool:
        """Whether the page can be scrolled sideways."""
        return bool(self.page.evaluate(WIDER_THAN_ITS_WINDOW))

    def faults(self) -> list[str]:
        """What axe calls serious or critical, with where it stands."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = self.page.evaluate("() => axe.run()")
        return [
            f"{fault['id']}: {fault['help']}: {node['target']} {node.get('failureSummary', '')}"
            for fault in found["violations"]
            if fault["impact"] in SERIOUS
            for node in fault["nodes"]
        ]

    def foreign_requests(self) -> list[str]:
        """Addresses the page asked that are not of the site. `data:` asks nobody."""
        urls = (request.url for request in self.requests)
        home = urlsplit(self.base).netloc
        return [url for url in urls if urlsplit(url).scheme != "data" and home != _host(url)]

    def places_of(self, secret: str, *, in_tab: bool = False) -> list[str]:
        """Where a secret went that it should not: anywhere but an Authorization header to us.

        `in_tab` expects it in the storage of the tab.
        """
        found = []
        for request in self.requests:
            sent = request.all_headers()
            carried = sent.pop("authorization", "")
            if secret in carried and _host(request.url) != urlsplit(self.base).netloc:
                found.append(f"Authorization to {request.url}")
            if secret in unquote(request.url):
                found.append(f"the address {request.url}")
            if secret in str(sent) or secret in (request.post_data or ""):
                found.append(f"a request to {request.url}")
        if secret in unquote(self.page.url):
            found.append("the address bar")
        if secret in str(self.page.evaluate(STORED)) or secret in str(self.page.context.cookies()):
            found.append("storage of the browser")
        if (secret in str(self.page.evaluate(TAB))) != in_tab:
            found.append("the storage of the tab")
        return found


@contextmanager
def visiting(
    browser: Browser, base: str, screen: Screen, *, scripts: bool = True, zone: str | None = None
) -> Iterator[Visitor]:
    """A visitor with a fresh profile at this screen, in a time zone; pages may run `scripts`."""
    context: BrowserContext = browser.new_context(
        viewport={"width": screen.width, "height": screen.height},
        color_scheme="dark" if screen.scheme == "dark" else "light",
        device_scale_factor=screen.scale,
        has_touch=screen.touch,
        is_mobile=screen.touch,
        java_script_enabled=scripts,
        timezone_id=zone,
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.add_init_script(WATCH)
    found = Visitor(base, context.new_page())
    found.page.on("request", lambda request: found.requests.append(request))
    found.page.on("console", lambda message: _hear(found, message))
    found.page.on("pageerror", lambda error: found.complaints.append(f"uncaught {error}"))
    found.page.on("response", lambda response: _look(found, response))
    yield found
    context.close()


def _hear(visitor: Visitor, message: ConsoleMessage) -> None:
    if message.type == "error":
        visitor.complaints.append(f"console: {message.text}")


def _look(visitor: Visitor, response: Response) -> None:
    if response.status >= 400:
        visitor.complaints.append(f"{response.status} {response.url}")


def _host(url: str) -> str:
    return urlsplit(url).netloc
