"""Readers with one eye: what a host lets its model see is all they know, and all they follow.

A reader begins with `search` and from then on makes only calls that an answer spelled out. It
opens a hit, walks back to the beginning of the field and on to its end, and puts it together.
"""

from typing import Any

from evidence.text import unescape
from tests.helpers.caller import Answer, Caller
from tests.helpers.reading import Call, fenced, printed_calls

MOST_CALLS = 600


class TextReader:
    """Sees `content[]` and nothing else."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.calls_made = 0

    def rebuild(self, query: str) -> str:
        """The whole field in which the first hit was found."""
        found = self._make(Call("search", {"query": query}))
        opened = next(call for call in self.calls(found) if call.tool == "read_record_field")
        middle = self._make(opened)
        before = "".join(reversed(self._walk(middle, "previous")))
        return before + self.window(middle) + "".join(self._walk(middle, "next"))

    def calls(self, answer: Answer) -> list[Call]:
        return printed_calls(answer.text)

    def window(self, answer: Answer) -> str:
        (shown,) = fenced(answer.text)
        return unescape(shown)

    def _walk(self, answer: Answer, why: str) -> list[str]:
        """The windows that follow in one direction, until no call leads on."""
        windows = []
        while following := [call for call in self.calls(answer) if call.why == why]:
            answer = self._make(following[0])
            windows.append(self.window(answer))
        return windows

    def _make(self, call: Call) -> Answer:
        self.calls_made += 1
        assert self.calls_made < MOST_CALLS, f"lost on the way: {call}"
        return self.caller.ok(call.tool, **call.args)


class StructuredReader(TextReader):
    """Sees `structuredContent` and nothing else."""

    def calls(self, answer: Answer) -> list[Call]:
        structured = answer.structured
        if "content_ladder" in structured:
            rungs = structured["content_ladder"]["records"]
            shown = [one for rung in rungs for one in rung["evidence"]]
            assert all("read" in one or one["complete"] for one in shown)
            return [self._call(one["read"]) for one in shown if "read" in one]
        return [self._call(structured[why]) for why in ("previous", "next") if why in structured]

    def window(self, answer: Answer) -> str:
        text: str = answer.structured["window"]["text"]
        return text

    @staticmethod
    def _call(found: dict[str, Any]) -> Call:
        return Call(found["tool"], found["args"], found["why"])
