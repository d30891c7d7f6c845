"""The routes of the reading pages."""

from flask import Blueprint, Response, redirect

from evidence.errors import EvidenceError
from service.pages.layout import SECURITY, Layout
from service.pages.reading import papers, records
from service.pages.reading.shown import BLOB_PATH, PAPER_PATH, PAPERS_PATH, PATH
from service.pages.reading.visits import Visits


def blueprint(layout: Layout) -> Blueprint:
    """The pages over what the server has: records, papers or both."""
    visits, routes = Visits(layout), Blueprint("reading", __name__)
    routes.register_error_handler(EvidenceError, visits.refused)
    routes.after_request(_private)
    routes.add_url_rule(PATH, "enter", visits.post, methods=["POST"])
    if layout.services.authority is not None:
        routes.add_url_rule(PATH, "search", lambda: records.search_page(visits))
        routes.add_url_rule(BLOB_PATH, "blob", lambda: records.blob(visits))
        routes.add_url_rule(
            f"{PATH}/<path:id>", "record", lambda id: records.record_page(visits, id)
        )
    else:
        routes.add_url_rule(PATH, "search", lambda: redirect(PAPERS_PATH))
    if layout.services.papers is not None:
        routes.add_url_rule(PAPERS_PATH, "papers", lambda: papers.search_page(visits))
        routes.add_url_rule(PAPER_PATH, "paper", lambda: papers.paper_page(visits))
    return routes


def _private(response: Response) -> Response:
    """No cache keeps a page, and none shows one visitor the page of another."""
    for name, value in SECURITY.items():
        response.headers.setdefault(name, value)
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["Vary"] = "Cookie"
    return response
