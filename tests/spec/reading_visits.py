"""A browser at the reading pages: enters a token, opens pages, and checks each of them."""

import re
from html import unescape
from urllib.parse import urlencode

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from service.pages.layout import POLICY

PAGE_BYTES = 100_000


def entered(app: Flask, token: str, surface: str = "records") -> FlaskClient:
    """A browser that has posted a token."""
    client = app.test_client()
    answer = client.post("/read", data={"token": token, "surface": surface, "to": "/read"})
    assert answer.status_code == 303, answer.text
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
        r"<script(?! type=\"module\" src=)|<style|\sstyle=|\son\w+=\"", answer.text
    )
    assert "<img src=x" not in answer.text and "\u202e" not in answer.text


def text(html: str) -> str:
    main = html[html.index("<main") : html.index("</main>")]
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", main)))


def links(html: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'<a [^>]*href="([^"]+)"', html)]


def opened(client: FlaskClient, query: str) -> str:
    """The page of the first hit."""
    found = page(client, "/read", q=query)
    href = unescape(str(re.search(r'class="hit" href="([^"]+)"', found)[1]))  # type: ignore[index]
    return page(client, href.partition("#")[0])
