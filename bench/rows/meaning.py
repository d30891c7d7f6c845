"""What search by meaning adds to a question, and to the memory of a worker."""

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from bench.calls import MODERN, call
from bench.findings import Finding, Line, Note
from bench.load import drive
from bench.plan import Plan
from bench.servers import Server, pinned, rung, two_cores
from bench.stores import open_queries
from bench.vectored import by_meaning, installed, open_vectored

#: The rows of questions and of long ones: their median and 95th percentile.
ROWS = (("meaning-p50", "meaning-p95"), ("meaning-long-p50", "meaning-long-p95"))
MILLION = (
    ("meaning-million-p50", "meaning-million-p95"),
    ("meaning-million-long-p50", "meaning-million-long-p95"),
)
LONG_CHARS = 500
MB, MS = 1_000_000, 1_000
TWENTIETHS = 20


def measure(plan: Plan) -> Iterator[Line]:
    """Asks each question by words and by both, in turn, by one client."""
    model = installed()
    if model is None:
        yield Note("search by meaning", "no model is installed: run `rung model install`")
        return
    core, client = two_cores()
    natural = open_queries(plan.middle).natural
    for keys, records in ((ROWS, plan.middle), (MILLION, plan.large)):
        vectored = open_vectored(records, model)
        with ExitStack() as stack:
            both = stack.enter_context(rung(vectored.store, core, **by_meaning()))
            words = stack.enter_context(rung(vectored.store, core))
            stack.enter_context(pinned(client))
            _differences(both, vectored.token, natural)  # warms up
            yield from _added(plan, both, vectored.token, natural, keys)
            if records == plan.middle:
                requests = [_request(vectored.token, text, "words") for text in natural]
                drive(words.port, requests, total=len(requests), connections=1)
                yield Finding("meaning-memory", ((both.memory() - words.memory()) / MB,))


def _added(
    plan: Plan,
    server: Server,
    token: str,
    questions: Sequence[str],
    keys: Sequence[tuple[str, str]],
) -> Iterator[Line]:
    """The median and the 95th percentile of what is added to a question; of long ones too."""
    for (middle, most), asked in zip(keys, (questions, list(map(_long, questions)))):
        rounds = [_differences(server, token, asked) for _ in range(max(2, plan.rounds // 2))]
        yield Finding(middle, tuple(statistics.median(each) * MS for each in rounds))
        high = (statistics.quantiles(each, n=TWENTIETHS)[-1] for each in rounds)
        yield Finding(most, tuple(p95 * MS for p95 in high))


def _long(question: str) -> str:
    """The question, repeated until it is long."""
    return (f"{question} " * (LONG_CHARS // len(question) + 1))[:LONG_CHARS]


def _differences(server: Server, token: str, questions: Sequence[str]) -> list[float]:
    """The seconds that each question takes longer than by words."""
    return [
        _seconds(server, token, question, "auto") - _seconds(server, token, question, "words")
        for question in questions
    ]


def _seconds(server: Server, token: str, question: str, mode: str) -> float:
    request = _request(token, question, mode)
    return drive(server.port, [request], total=1, connections=1).p50


def _request(token: str, question: str, mode: str) -> bytes:
    return call(token, "search", {"query": question, "mode": mode}, era=MODERN)
