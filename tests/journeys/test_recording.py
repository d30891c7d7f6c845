"""The moving picture of the README shows what the commands print."""

from xml.etree import ElementTree

import pytest

from tests.journeys.recording import PICTURE, SCENES, recorded

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
def test_the_recording_shows_what_a_terminal_shows() -> None:
    assert PICTURE.read_text(encoding="utf-8") == recorded(), "make golden"


def test_the_recording_takes_30_seconds_and_runs_no_script() -> None:
    picture = ElementTree.parse(PICTURE).getroot()
    assert sum(seconds for _, seconds in SCENES) == 30
    tags = {element.tag.removeprefix(SVG) for element in picture.iter()}
    assert tags == {"svg", "title", "style", "rect", "g", "text", "tspan"}
    title = picture.find(f"{SVG}title")
    assert title is not None and all(command in str(title.text) for command, _ in SCENES)
