"""Bytes over HTTP where there are none."""

from collections.abc import Iterator

import pytest
from flask import Flask

from service.rest import blueprint
from service.ports import Blob


def nothing(start: int, stop: int) -> Iterator[bytes]:
    yield b""


@pytest.mark.parametrize("asked", ["bytes=0-9", "bytes=-5", "bytes=3-"])
def test_an_empty_blob_has_no_parts(asked: str) -> None:
    with Flask("test").test_request_context(headers={"Range": asked}):
        answer = blueprint.respond(Blob("b", "image/png", 0, "", nothing), {"Request-Id": "r"})
    assert (answer.status_code, answer.get_data()) == (200, b"")
    assert "Content-Range" not in answer.headers
