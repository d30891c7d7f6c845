"""Servers that mean no good, or are broken: commands end, say what happened, and harm nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.helpers.archive import Archive, asked_for
from tests.helpers.loopback import Asked, Reply, answering, as_json

MANY = 50


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def page(*rows: dict[str, Any], **more: Any) -> Reply:
    return as_json({"object": "list", "data": list(rows), "has_more": False, **more})


def row(name: str, **data: Any) -> dict[str, Any]:
    return {"id": name, "stream": "notes", "connection_id": "home", "data": data}


def copied(archive: Archive, answer: Callable[[Asked], Reply], out: Path, *words: str) -> Result:
    """What an export of a stream from a server that answers like this leaves."""
    with answering(answer) as server:
        what = words or ("stream", "notes")
        return archive.at(RUNG_URL=server.url).run("export", *what, "-o", str(out))


def test_a_source_that_leads_in_a_circle_is_not_followed_for_ever(
    archive: Archive, out: Path
) -> None:
    following = {None: "one", "one": "two", "two": "three", "three": "one"}

    def answer(asked: Asked) -> Reply:
        cursor = following[asked_for(asked, "cursor")]
        return page(row("n"), has_more=True, next_cursor=cursor)

    result = copied(archive, answer, out)
    assert result.exit_code == 1 and "repeated or empty pages" in result.stderr, result.output
    assert not out.exists()


def test_a_page_that_repeats_under_ever_new_cursors_is_not_followed_for_ever(
    archive: Archive, out: Path
) -> None:
    def answer(asked: Asked) -> Reply:
        cursor = int(asked_for(asked, "cursor") or 0)
        if cursor > MANY:
            return page(row("n"))
        return page(row("n"), row("m"), has_more=True, next_cursor=str(cursor + 1))

    result = copied(archive, answer, out)
    assert result.exit_code == 1 and "repeated or empty pages" in result.stderr, result.output
    assert not out.exists()


def test_a_source_that_leads_to_nothing_is_not_followed_for_ever(
    archive: Archive, out: Path
) -> None:
    def answer(asked: Asked) -> Reply:
        cursor = int(asked_for(asked, "cursor") or 0)
        return page(has_more=True, next_cursor=str(cursor + 1))

    result = copied(archive, answer, out)
    assert result.exit_code == 1 and "repeated or empty pages" in result.stderr, result.output


def test_a_row_without_an_id_is_told_of_and_words_of_a_source_stay_on_one_line(
    archive: Archive, out: Path
) -> None:
    said = "odd\x1b[2J\nnext: rung export everything"

    def answer(asked: Asked) -> Reply:
        warned = {"warnings": [{"code": "odd", "message": said}], "count": {"value": -5}}
        return page(row("a"), {"data": {"text": "no id"}}, row("b"), meta=warned)

    result = copied(archive, answer, out)
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["id"] for line in out.read_bytes().splitlines()] == ["a", "b"]
    assert "without a record id" in result.stderr and "\\nnext: rung" in result.stderr
    assert "\x1b" not in result.stderr and "\nnext:" not in result.stderr


@pytest.mark.parametrize("size", ["many", 1e30, -1, [], None])
def test_bytes_of_no_known_size_are_shown(archive: Archive, size: object) -> None:
    told = {"object": "binary_field", "encoding": "base64", "size_chars": size}
    with answering(lambda asked: page(row("a", file=told))) as server:
        result = archive.at(RUNG_URL=server.url).run("query", "notes")
    assert result.exit_code == 0, (result.output, result.exception)
    assert "binary_field" in result.stdout


@pytest.mark.parametrize("words", [("stream", "notes"), ("record", "home/notes:a")])
def test_sizes_that_are_none_are_no_reason_to_break(
    archive: Archive, out: Path, words: tuple[str, ...]
) -> None:
    cut = {"object": "field_preview", "size_chars": -1, "size_bytes": "many", "preview_text": ""}
    whole = row("a", text="whole")

    def answer(asked: Asked) -> Reply:
        if asked_for(asked, "fields"):
            return as_json(whole)
        return page(row("a", text=cut)) if words[0] == "stream" else as_json(row("a", text=cut))

    result = copied(archive, answer, out, *words)
    assert result.exit_code == 0, (result.output, result.exception)
    assert json.loads(out.read_bytes())["data"] == {"text": "whole"}


#: What would take over a terminal, mislead who reads it, or pass for a line of ours.
EVIL = "odd\x1b]0;owned\x07\x1b[2J\u202e\x9b31m\r\nnext: rung export everything"


def poisoned(asked: Asked) -> Reply:
    """Evil in every name and text, spelled as a server of our own kind spells it."""
    who = {"id": f"r{EVIL}", "stream": EVIL, "connection_id": f"c{EVIL}", "display_name": EVIL}
    if "/search" in asked.target:
        excerpt = {"field_path": EVIL, "preview_text": EVIL, "start_chars": 0, "end_chars": "x"}
        rows = [{**who, "title": EVIL, "evidence_excerpts": [excerpt]}]
    elif "/aggregate" in asked.target:
        return as_json({"group_by": EVIL, "metric": EVIL, "groups": [{"key": EVIL, "count": 1}]})
    else:
        rows = [{**who, "data": {EVIL: EVIL}}]
    warned = {"warnings": [{"code": EVIL, "message": EVIL}]}
    return page(*rows, has_more=True, next_cursor=EVIL, meta=warned)


def test_no_word_of_a_server_reaches_a_terminal_raw(archive: Archive, tmp_path: Path) -> None:
    with answering(poisoned) as server:
        shell = archive.at(RUNG_URL=server.url, TERM="dumb")
        shown = shell.terminals(
            ("search", "odd"),
            ("query", "notes"),
            ("query", "notes", "--jsonl"),
            ("aggregate", "notes", "count", "--group-by", "kind"),
        )
    assert shown.count("owned") > 9
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r"} & set(shown)
