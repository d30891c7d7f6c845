"""A newcomer's walk as a page to read: the same for every token, port and store.

`python -m tests.journeys.transcript` makes the walk and writes the page.
"""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.helpers.reading import Call
from tests.helpers.server import ROOT
from tests.journeys.newcomer import QUESTION, SENTENCE, Walk, walk

PAGE = ROOT / "docs/first-search.md"
WRITTEN_FOR = "claude-code"
LINE_CHARS = 180
STRING_CHARS = 100
LINES_SHOWN = 12
LEFT_OUT = ("inputSchema", "annotations", "version")
MARK = "0123456789ab"

HEAD = """\
# A first search, line by line

<!-- Written by `make golden` from a recorded session. Change the code, not this page. -->

This page shows the steps from `make demo` to an answer. The commands are those in the README,
with two more options for `rung connect`. The client reads its own configuration file, and the agent
takes every call after its first search from an earlier answer. `…` stands for text that this page
leaves out, and for the token. A test repeats the session and compares the result with this page.
"""

TELL = """\
Run these commands in another shell. Leave out `--inline-token` if the client can read the token
from its environment or from a file. In this example, `--config` names a separate file, so that
your own configuration does not change.
"""

SEARCH = """\
The user asked: *Where did the quorum meet? Quote it.* From here on, this page shows what the model
sees: its calls and the text of the answers.
"""

READ = """\
Two lines, the *fence*, enclose record text and mark it as untrusted. In the search result above,
the line before the fence ends with the call that opens the message at the match. In each later
answer except the last, the call for the next part of the message (the next *window*) follows
`next:`.
"""


def written(walked: Walk) -> str:
    """The page."""
    (make, said), (export, _), (connect, told) = walked.commands
    sections = [
        HEAD,
        "## 1. Start\n",
        _console((make, _cut(said))),
        "## 2. Configure the client\n",
        TELL,
        _console((export, ""), (connect, told)),
        "The file then contains:\n",
        _block("json", walked.file),
        "## 3. The client connects\n",
        "The client sends every message, with the header, to the URL in this file.\n",
        *_exchange(walked, "initialize"),
        *_exchange(walked, "tools/list"),
        "## 4. The agent searches\n",
        SEARCH,
        _called(Call("search", {"query": QUESTION}), walked.found),
        "## 5. The agent opens the match and continues\n",
        READ,
        *_reads(walked),
        "## 6. The agent answers\n",
        f"> “{SENTENCE}”\n",
        _sum(walked),
    ]
    return "\n".join(sections)


def _reads(walked: Walk) -> list[str]:
    """The first two windows and the last."""
    first, second, *between, last = walked.reads
    return [
        _called(*first),
        _called(*second),
        f"After {len(between)} more calls, the last call reads the end of the message:\n",
        _called(*last),
    ]


def _sum(walked: Walk) -> str:
    last, _ = walked.reads[-1]
    where = f"the field `{last.args['field_path']}` of `{last.args['id']}`"
    sizes = f"{len(walked.reads)} windows, {len(walked.text):,} characters in all"
    reads = f"From the match to the end of the message, the agent read {sizes}."
    return f"The search found the sentence in {where}.\n{reads}\n"


def _exchange(walked: Walk, method: str) -> list[str]:
    """A message and its answer, with long texts and lists cut."""
    asked, answered = next(each for each in walked.messages if each[0]["method"] == method)
    return [_block("json", _json(asked)), _block("json", _json(answered))]


def _called(call: Call, answer: str) -> str:
    args = json.dumps(call.args, ensure_ascii=False, separators=(",", ":"))
    found = re.search(r"<<<([0-9a-f]{12}) ", answer)
    said = answer.replace(found[1], MARK) if found else answer
    return _block("text", f"{call.tool} {args}\n\n{_fences_cut(said)}")


def _fences_cut(answer: str) -> str:
    """All of our own lines, and of record text its beginning."""
    head, opened, rest = answer.partition("<<<")
    text, closed, tail = rest.rpartition(f"\n{MARK}>>>")
    if not opened:
        return _narrow(answer)
    mark, _, text = text.partition("\n")
    kept = text.split("\n")
    shown = kept if len(kept) <= LINES_SHOWN else [kept[0], "…"]
    return head + opened + mark + "\n" + _narrow("\n".join(shown)) + closed + tail


def _narrow(text: str) -> str:
    return "\n".join(_short(line, LINE_CHARS) for line in text.split("\n"))


def _cut(said: str) -> str:
    """The addresses, which stand in the first paragraphs."""
    return "\n\n".join(said.strip().split("\n\n")[:2]) + "\n…"


def _short(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: text.rindex(" ", 0, chars)] + " …"


def _json(value: Any) -> str:
    return json.dumps(_shortened(value), ensure_ascii=False, indent=2)


def _shortened(value: Any) -> Any:
    """Long strings end in `…`; what is long or changes is `…` alone."""
    if isinstance(value, str):
        return _short(value, STRING_CHARS)
    if isinstance(value, dict):
        return {key: "…" if key in LEFT_OUT else _shortened(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shortened(one) for one in value]
    return value


def _console(*steps: tuple[str, str]) -> str:
    lines = [f"$ {command}\n{said}".rstrip() for command, said in steps]
    return _block("console", "\n".join(lines))


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def main() -> None:
    with TemporaryDirectory() as folder:
        PAGE.write_text(written(walk(Path(folder), WRITTEN_FOR)), encoding="utf-8")


if __name__ == "__main__":
    main()
