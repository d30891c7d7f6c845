"""What a model reads, kept to the byte: a change here is a change of copy, and reviewed as such."""

import pytest

from tests.golden.transcripts import CALLS, FOLDER, PAPER_CALLS, budget, path_of, transcript
from tests.helpers.caller import Local
from tests.helpers.papers import Library


@pytest.mark.parametrize("name", CALLS)
def test_the_text_a_model_reads_is_the_text_that_was_reviewed(small: Local, name: str) -> None:
    kept = path_of(name).read_text(encoding="utf-8")
    assert transcript(small, name) == kept, "if the copy is better now: -m tests.golden.rewrite"


@pytest.mark.parametrize("name", CALLS)
def test_every_transcript_stays_inside_its_budget(small: Local, name: str) -> None:
    tool, args = CALLS[name]
    assert len(small.call(tool, **args).text.encode()) <= budget(tool)


def test_there_is_a_transcript_for_each_call_and_no_other() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == {*CALLS, *PAPER_CALLS}


@pytest.mark.parametrize("name", PAPER_CALLS)
def test_the_text_about_papers_is_the_text_that_was_reviewed(papers: Library, name: str) -> None:
    tool, args = PAPER_CALLS[name]
    kept = path_of(name).read_text(encoding="utf-8")
    assert transcript(papers, name) == kept, "if the copy is better now: -m tests.golden.rewrite"
    assert len(papers.call(tool, **args).text.encode()) <= budget(tool)


def test_the_first_line_of_every_text_says_what_it_answers(small: Local) -> None:
    for tool, args in CALLS.values():
        answer = small.call(tool, **args)
        first = "{" if tool == "fetch" and not answer.failed else tool
        assert answer.text.startswith("error code=" if answer.failed else first)
