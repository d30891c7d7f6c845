"""Measures a server: every task, then every handle that its answers printed."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from quality.evidence import proof
from quality.evidence.agent import Agent, Call, Reader, ToolError
from quality.evidence.clients import Client
from quality.evidence.corpus import ACCOUNTS, Record
from quality.evidence.tasks import NONE, Ask, Task

#: A task with more calls is given up.
MAX_CALLS = 25
_ODD = re.compile(r"[^\w-]|[^\x00-\x7f]")


@dataclass(slots=True)
class Result:
    """What the tasks took. Bytes are UTF-8 of `content[]`; `largest` is one answer.

    `shown` of `hits` had an excerpt with a word of the question. `at_once` of `searched` tasks were
    solved by the first page. `dead` of `handles` were refused.
    """

    server: str
    tasks: int = 0
    right: int = 0
    calls: int = 0
    bytes: int = 0
    largest: int = 0
    hits: int = 0
    shown: int = 0
    searched: int = 0
    at_once: int = 0
    handles: int = 0
    dead: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def row(self) -> dict[str, Any]:
        return asdict(self)


class _TooManyCalls(Exception):
    """A task took more than `MAX_CALLS` calls."""


@dataclass
class _Dialogue:
    """The calls of a task and their answers."""

    client: Client
    answers: list[str] = field(default_factory=list)

    def call(self, call: Call) -> str:
        """The text of an answer. Raises `ToolError` if it is an error."""
        if len(self.answers) == MAX_CALLS:
            raise _TooManyCalls
        named = {"name": call.tool, "arguments": call.arguments}
        try:
            result = self.client.request("tools/call", named)
        except RuntimeError as error:
            raise ToolError(str(error)) from None
        text = "\n".join(block.get("text", "") for block in result["content"])
        self.answers.append(text)
        if result.get("isError"):
            raise ToolError(text)
        return text


def write(folder: Path, records: Sequence[Record], tasks: Sequence[Task]) -> None:
    """Writes a corpus: the rows of each account, and the tasks."""
    accounts = []
    for account in ACCOUNTS:
        rows = [record.row for record in records if record.account is account]
        file = f"{account.connection}.ndjson"
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / file).write_text(lines, encoding="utf-8")
        accounts.append({"label": account.label, "file": file, "title": account.title})
    _write(folder / "accounts.json", accounts)
    _write(folder / "tasks.json", [task.row for task in tasks])


def measure(folder: Path, client: Client, reader: Reader, only: tuple[str, ...] = ()) -> Result:
    """Runs the tasks of a corpus, or those whose id begins with one of `only`; tries handles."""
    result = Result("{name} {version}".format(**client.server))
    answers = list[str]()
    for row in json.loads((folder / "tasks.json").read_text(encoding="utf-8")):
        task = Task.read(row)
        if not only or task.id.startswith(only):
            answers += _solve(task, client, reader, result)
    if not only:
        for title in _odd_titles(folder):
            with suppress(ToolError):
                answers.append(_Dialogue(client).call(reader.search(title.split())))
    handles = {repr(call): call for answer in answers for call in _handles(reader, answer)}
    for call in handles.values():
        result.handles += 1
        try:
            _Dialogue(client).call(call)
        except ToolError:
            result.dead += 1
    return result


def _solve(task: Task, client: Client, reader: Reader, result: Result) -> list[str]:
    dialogue = _Dialogue(client)
    try:
        answer = Agent(reader, dialogue.call).answer(task.ask)
    except (ToolError, _TooManyCalls, LookupError, ValueError):  # or it is no page of this reader
        answer = ""
    right = answer == task.answer
    result.tasks += 1
    result.right += right
    result.calls += len(dialogue.answers)
    sizes = [len(text.encode("utf-8", "surrogatepass")) for text in dialogue.answers]
    result.bytes += sum(sizes)
    result.largest = max([result.largest, *sizes])
    if not right:
        result.wrong.append(task.id)
    if task.ask.words and dialogue.answers:
        excerpts = _excerpts(reader, dialogue.answers[0], task.ask)
        result.hits += len(excerpts)
        result.shown += sum(proof.shown(task.ask.words, text) > 0 for text in excerpts)
        if task.ask.goal != "closing" and task.answer != NONE:
            result.searched += 1
            result.at_once += right and len(dialogue.answers) == 1
    return dialogue.answers


def _excerpts(reader: Reader, answer: str, ask: Ask) -> list[str]:
    """What the first page of a search shows of each hit."""
    try:
        return ["\n".join(hit.excerpts) for hit in reader.page(answer, ask).hits]
    except ValueError:
        return []


def _handles(reader: Reader, answer: str) -> Iterator[Call]:
    try:
        yield from reader.handles(answer)
    except ValueError:  # the answer was an error
        return


def _odd_titles(folder: Path) -> Iterator[str]:
    """The titles of records whose ids are hard to carry, without punctuation."""
    for account in json.loads((folder / "accounts.json").read_text(encoding="utf-8")):
        for line in (folder / account["file"]).read_bytes().splitlines():
            row = json.loads(line)
            if _ODD.search(row["id"]):
                yield re.sub(r"^(Re|Fwd): ", "", row[account["title"]])


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
