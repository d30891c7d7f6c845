"""How much a run measures: a full run, or a quick one that only shows that everything works."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Numbers of queries, of turns of one client, of rounds, and of requests of each kind."""

    queries: int
    turns: int
    rounds: int
    loaded: int
    fan_ins: int
    packages: int
    reads: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes and repetitions. `small`, `middle` and `large` are records.

    `seconds` is the length of a load. Natural questions are also measured with each number of
    clients in `more_clients`. `scripts` runs the peers written in TypeScript.
    """

    name: str
    small: int
    middle: int
    large: int
    huge_chars: int
    rounds: int
    seconds: float
    more_clients: tuple[int, ...]
    scripts: bool
    asks: int
    starts: int
    scans: int
    page: int
    imports: int
    soak_seconds: float
    upstreams: Upstreams
    papers: int
    paper_rounds: int
    paper_pages: int
    swaps: int


FULL = Plan(
    name="full",
    small=10_000,
    middle=100_000,
    large=1_000_000,
    huge_chars=100_000_000,
    rounds=5,
    seconds=3.0,
    more_clients=(1, 64),
    scripts=True,
    asks=120,
    starts=5,
    scans=5,
    page=400,
    imports=3,
    soak_seconds=120.0,
    upstreams=Upstreams(
        queries=200, turns=20, rounds=5, loaded=1_200, fan_ins=60, packages=300, reads=2_000
    ),
    papers=3_000,
    paper_rounds=5,
    paper_pages=1_000,
    swaps=100,
)
QUICK = Plan(
    name="quick",
    small=500,
    middle=4_000,
    large=8_000,
    huge_chars=4_000_000,
    rounds=2,
    seconds=0.3,
    more_clients=(64,),
    scripts=False,
    asks=40,
    starts=2,
    scans=2,
    page=100,
    imports=1,
    soak_seconds=5.0,
    upstreams=Upstreams(
        queries=40, turns=3, rounds=2, loaded=120, fan_ins=8, packages=40, reads=240
    ),
    papers=300,
    paper_rounds=2,
    paper_pages=100,
    swaps=6,
)
