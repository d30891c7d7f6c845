"""Reads the pages of Rung and of the plain server."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from urllib.parse import quote

from quality.evidence.agent import Call, Caller, Hit, Page
from quality.evidence.corpus import FIELD
from quality.evidence.tasks import Ask

_HIT = re.compile(r"\d+ (\S+/\S+:\S+) ")
_QUOTED = re.compile(r'\d+\.\.\d+ of \d+ ("(?:[^"\\]|\\.)*")')
_CALL = re.compile(r"\b(search|fetch|read_record_field|query_records|aggregate|schema) (?=\{\")")
_FENCE = re.compile(r"<<<(\w{12}) untrusted record text\n(.*?)\n\1>>>", re.DOTALL)
_NEEDS_ESCAPE = re.compile(r'[\s%/;,\[\]{}"\\\x00-\x1f\x7f]')


class RungReader:
    """Pages of Rung: a line for each hit, its evidence below it, and complete calls."""

    def search(self, words: Sequence[str]) -> Call:
        return Call("search", {"query": " ".join(words)})

    def page(self, text: str, ask: Ask) -> Page:
        """Hits that lack a word are not read, nor is the page after one on which all hits do."""
        if " all=0 " in text.partition("\n")[0]:
            return Page(())
        hits, lines, complete = list[Hit](), iter(text.split("\n")), list[bool]()
        for line in lines:
            if line.startswith("<<<"):
                excerpt = takewhile(f"{line[3:15]}>>>".__ne__, lines)
                hits[-1].excerpts.append(_unmarked("\n".join(excerpt)))
            elif match := _HIT.match(line):
                hits.append(Hit(match[1]))
                complete.append("missing: " not in line)
            elif line.startswith("  ") and hits:
                if quoted := _QUOTED.search(line):
                    hits[-1].excerpts.append(_unmarked(json.loads(quoted[1])))
                if complete[-1]:
                    hits[-1].reads += _calls(_QUOTED.sub("", line))
        if ask.goal == "beside":
            for hit in hits:
                if any("offset_chars" in read.arguments for read in hit.reads):
                    hit.reads.insert(0, self._around(hit.id, " ".join(ask.words), 800, 400))
        return Page(hits, _printed(text, "next_page") if any(complete) else None)

    def text(self, answer: str) -> str:
        fenced = _FENCE.search(answer)
        return _unmarked(fenced[2]) if fenced else ""

    def more(self, answer: str) -> Call | None:
        return _printed(answer, "next_match")

    def record(self, ask: Ask, call: Caller) -> str:
        id = _NEEDS_ESCAPE.sub(lambda match: quote(match[0], safe=""), ask.record_id)
        return f"{self._connection(ask, call)}/{ask.stream}:{id}"

    def around(self, id: str, phrase: str) -> Call:
        return self._around(id, phrase, 20, 80)

    def end(self, id: str, chars: int, call: Caller) -> str:
        first = {"id": id, "field_path": FIELD, "limit_chars": chars}
        answer = call(Call("read_record_field", first))
        last = _printed(answer, "end")
        return self.text(call(last) if last else answer)

    def count(self, ask: Ask, call: Caller) -> int:
        counted = {"stream": ask.stream, "metric": "count", "filter": ask.equal}
        connection = self._connection(ask, call)
        answer = call(Call("aggregate", {**counted, "connection_id": connection}))
        return int(re.findall(r"\bvalue=(\d+)", answer)[0])

    def handles(self, answer: str) -> Iterator[Call]:
        own = _QUOTED.sub("", _FENCE.sub("", answer))
        yield from _calls(own)
        for id in re.findall(r"^\d+ (\S+/\S+:\S+) | id=(\S+)", own, re.MULTILINE):
            yield Call("fetch", {"id": id[0] or id[1], "fields": ["id"]})

    def _around(self, id: str, phrase: str, before: int, after: int) -> Call:
        window = {"query": phrase, "before_chars": before, "after_chars": after}
        return Call("read_record_field", {"id": id, "field_path": FIELD, **window})

    def _connection(self, ask: Ask, call: Caller) -> str:
        label = re.escape(ask.account)
        return re.findall(rf'(\S+)="{label}"', call(Call("schema", {})))[0]


class PlainReader:
    """JSON of the tools `search` and `fetch` that many servers have, and of a tool `count`."""

    def search(self, words: Sequence[str]) -> Call:
        return Call("search", {"query": " ".join(words)})

    def page(self, text: str, ask: Ask) -> Page:
        results = json.loads(text)["results"]
        fetched = [Call("fetch", {"id": hit["id"]}) for hit in results]
        return Page([Hit(hit["id"], [hit["text"]], [call]) for hit, call in zip(results, fetched)])

    def text(self, answer: str) -> str:
        text: str = json.loads(answer)["text"]
        return text

    def more(self, answer: str) -> Call | None:
        return None

    def record(self, ask: Ask, call: Caller) -> str:
        return f"{ask.account}/{ask.record_id}"

    def around(self, id: str, phrase: str) -> Call:
        return Call("fetch", {"id": id})

    def end(self, id: str, chars: int, call: Caller) -> str:
        return self.text(call(self.around(id, "")))

    def count(self, ask: Ask, call: Caller) -> int:
        return int(call(Call("count", {"account": ask.account, **ask.equal})))

    def handles(self, answer: str) -> Iterator[Call]:
        body = json.loads(answer)
        for hit in body["results"] if isinstance(body, dict) and "results" in body else ():
            yield Call("fetch", {"id": hit["id"]})


def _calls(text: str) -> Iterator[Call]:
    """The complete calls in a text, each a tool and its arguments as JSON."""
    for match in _CALL.finditer(text):
        arguments, _ = json.JSONDecoder().raw_decode(text, match.end())
        if "<" not in str(arguments.get("id")):  # or it is a template
            yield Call(match[1], arguments)


def _printed(text: str, name: str) -> Call | None:
    """The call in the line that begins with a name."""
    own = _FENCE.sub("", text)
    line = re.search(rf"^{name}: (.*)$", own, re.MULTILINE)
    return next(_calls(line[1]), None) if line else None


def _unmarked(text: str) -> str:
    """The stored text of an excerpt: without marks and escapes."""
    text = re.sub(r"</?mark>", "", text)
    return re.sub(r"\\u\{([0-9A-F]+)\}", lambda match: chr(int(match[1], 16)), text)


READERS = {"rung": RungReader, "plain": PlainReader}
