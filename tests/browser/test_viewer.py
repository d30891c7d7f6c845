"""`/docs/api`: Swagger UI under our policy, with the token staying in the page."""

import pytest

from tests.browser.site import Site
from tests.browser.visitor import DARK_DESK, DARK_PHONE, DESK, PHONE, Visitor

EVERY_SCREEN = pytest.mark.parametrize("screen", [PHONE, DESK, DARK_PHONE, DARK_DESK], ids=str)
#: Of Swagger UI itself: the header of each route is one control, with more of them inside.
NOT_OURS = "nested-interactive: "


@EVERY_SCREEN
def test_the_reference_has_no_serious_fault_of_ours_and_fits(visitor: Visitor) -> None:
    visitor.go("/docs/api")
    visitor.page.locator("#operations-records-search").wait_for()
    assert not [fault for fault in visitor.faults() if not fault.startswith(NOT_OURS)]
    assert not visitor.overflows()


def test_a_route_is_asked_from_the_page_and_the_token_stays_in_it(
    visitor: Visitor, site: Site
) -> None:
    visitor.go("/docs/api")
    page = visitor.page
    page.get_by_role("button", name="Authorize").first.click()
    page.locator(".auth-container input").fill(site.token)
    page.locator(".auth-btn-wrapper .authorize").click()
    page.locator(".auth-btn-wrapper .btn-done").click()
    page.locator("#operations-records-schema .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    answered = page.locator(".live-responses-table .response-col_status").last
    assert answered.inner_text().startswith("200")
    assert not visitor.places_of(site.token)
    page.reload()
    assert site.token not in page.content()
