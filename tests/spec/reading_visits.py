"""A browser at the reading pages: enters a token, opens pages, and checks each of them."""

import re
from html import unescape
from urllib.parse import urlencode

from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from service.pages.layout import POLICY
from tests.helpers.signin import begun_at

PAGE_BYTES = 100_000


class Reader(FlaskClient):
    """A browser that goes on from plain addresses to the path of its session, as `session.js`."""

    path = ""

    def open(self, *args: Any, **kwargs: Any) -> TestResponse:
        address, *others = args
        if address.startswith("/read"):
            address = self.path + address
        answer = super().open(address, *others, **kwargs)
        if answer.mimetype == "text/html":
            self.path = begun_at(answer.text) or self.path
        return answer


def entered(app: Flask, token: str, surface: str = "records") -> Reader:
    """A browser that has posted a token."""
    client = Reader(app, app.response_class)
    client.post("/read", data={"token": token, "surface": surface, "to": "/read"})
    assert client.path
    return client


def page(client: FlaskClient, path: str, status: int = 200, **query: str) -> str:
    """A page as HTML, after the checks that apply to all pages."""
    answer = client.get(f"{path}?{urlencode(query)}" if query else path)
    assert answer.status_code == status, answer.text
    check(answer)
    return answer.text


def check(answer: TestResponse) -> None:
    assert len(answer.data) <= PAGE_BYTES
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert "Cookie" in answer.headers["Vary"]
    assert not re.search(
        r"<script(?!( type=\"module\")? src=\"/static/)|<style|\sstyle=|\son\w+=\"", answer.text
    )
    assert "<img src=x" not in answer.text and "\u202e" not in answer.text


def text(html: str) -> str:
    main = html[html.index("<main") : html.index("</main>")]
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", main)))


def links(html: str) -> list[str]:
    """The addresses of all links, as `session.js` shows them."""
    found = re.findall(r'<a [^>]*href="([^"]+)"', html)
    return [re.sub(r"^/s/[\w-]{22}", "", unescape(one)) for one in found]


def opened(client: FlaskClient, query: str) -> str:
    """The page of the first hit."""
    found = page(client, "/read", q=query)
    href = unescape(str(re.search(r'class="hit" href="([^"]+)"', found)[1]))  # type: ignore[index]
    return page(client, href.partition("#")[0])
