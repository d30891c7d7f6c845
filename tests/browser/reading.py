"""The reading pages in the hands of a visitor."""

from tests.browser.site import Site
from tests.browser.visitor import Visitor
from tests.helpers.api import Api


def enter(visitor: Visitor, token: str) -> None:
    """Posts a token with the form on show; waits for the page behind it."""
    visitor.page.get_by_label("Token").fill(token)
    visitor.page.get_by_role("button", name="Open").click()
    visitor.page.get_by_role("button", name="End this session").wait_for()


def kinds(site: Site) -> list[tuple[str, str]]:
    """(connection, stream) of a stream of each connection of the demo."""
    rows = Api(site.base, site.token).rest("/v1/streams").body["data"]
    found = {row["connection_id"]: row["name"] for row in rows if row["name"] != "attachments"}
    return [*found.items()]


def open_kind(visitor: Visitor, site: Site, kind: tuple[str, str]) -> None:
    """Opens the newest record of a stream."""
    connection, stream = kind
    path = f"/v1/streams/{stream}/records"
    listed = Api(site.base, site.token).rest(path, connection_id=connection, limit=1).body["data"]
    visitor.go(f"/read/{connection}/{stream}:{listed[0]['id']}")
