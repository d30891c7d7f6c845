"""The page of figures: every measure with its gate and baseline, then each collection."""

from collections.abc import Iterable, Iterator, Sequence

from quality.measures import BM25S, FTS5, MEANING, RUNG, SESSIONS, TYPED, TYPOS, Row
from quality.metrics import ALL
from quality.runs import BANDS, Run

HEAD = """# Search quality

This page shows how often search finds the right record in public collections and in our own
collection. `COLLECTIONS=FOLDER make quality` writes the page.

Each question is sent as it was typed, in one call for ten hits, to the same search that the MCP
tools use. Each group of a collection is a connection with its own grant. In runs without vectors,
except those of the papers and the demo, two baselines answer the same questions: SQLite FTS5 with
`tokenize = 'porter unicode61'`, and bm25s with Snowball stems. Both remove stop words (if bm25s has
a list for the language), join the other words with OR, and rank by BM25.

"""

FIGURES_MEAN = """- **R@k**, recall: the share of the right records that are among the first k hits.
- **MRR**: the mean over all questions of 1 divided by the rank of the first right record, or of 0
  if none of the ten hits is right.
- **nDCG@10**: the gain of the ten hits, by grade and rank, divided by the best possible gain.
- **any**: the share of questions with at least one hit.
- **bytes**: the mean size, in UTF-8 bytes, of the text that a model reads for a question.
- **coverage**: the share of a question's words that a hit contains, weighted by their rarity.
- **gate**: the bound that a value or a ratio must satisfy.

*With vectors* marks runs in which the texts have vectors from the model multilingual-e5-small. The
figures for LoCoMo, Cranfield and XQuAD cover half of each collection. For the whole of LoCoMo,
others have published these values of R@10: Nemotron-8B 0.801, bge-gemma2 (9 B) 0.784, Linq-7B
0.761, e5-small 0.667, bge-small 0.585. For multilingual-e5-small alone and all 2,069 paragraphs of
SQuAD, [others published](https://huggingface.co/pavanyadava07/multilingual-retrieval-lab-e5s) an
nDCG@10 of 0.878 with XQuAD's English questions, and of 0.762 with German questions about the
English paragraphs.

A ratio compares Rung with the search that the gate names, or with FTS5 if the gate names none. For
*one typo*, the ratio is Rung's recall with typos divided by its recall without typos, and the
baseline is the same ratio for FTS5. If the baseline is 0, the table shows the ratio 0.00.
"""

REPEAT = """## Repeat the measurement

```console
$ make quality
$ COLLECTIONS=../collections make quality
```

The first command measures our own collection, the needles, the papers and the demo, and writes
`var/quality/search-quality.md`. The second command also measures every collection in the folder
`../collections`, and writes this page. A collection is a folder with three files:

- `about.json`: an object with `kind` (a description), and optionally `source` and `languages`.
  `languages` maps groups to ISO 639-1 codes. If a group is not listed and its name has two letters,
  the name is the code. The language of any other group is English.
- `documents.ndjson`: each line has `id` and `group`, and optionally `title`, `text`, `caption`,
  `author`, `at`, `session` and `order`. The manifest declares these as title, text, actor, event
  time, thread and position; a caption has no role.
- `queries.ndjson`: each line has `id`, `group`, `text`, `category` and `relevant`, which maps
  document ids to grades.

Each run fills a new store. Repeated runs give the same figures, except for times.
"""

NOTES = {
    "own": (
        "The questions use word forms that differ from those in the records, contain typing "
        "errors, or spell umlauts as two letters. A test enforces the gates."
    ),
    "needles": (
        "For each query, one record of 200,000 characters contains two words in one sentence and, "
        "as long texts do, repeats each of these words elsewhere. Eight short records and two "
        "other long records contain the same words far apart. The query consists of these two "
        "words."
    ),
    "papers": (
        "The snapshots contain the papers of the demo and of the tests. The queries contain "
        "plurals, inflected forms or typing errors, or are questions that no paper matches in "
        "full. There is no baseline."
    ),
    "locomo": (
        "Each session is a thread. The category *all* leaves out category 5, as the authors of the "
        "collection do; sizes, hits, times and coverage include it. *By session* counts any hit "
        "from the right session as right, as many publications do. *One typo* repeats all "
        "questions with one error in the rarest long word: in turn, two letters are swapped, or "
        "one letter is deleted, replaced or inserted. The first letter stays the same."
    ),
    "cranfield": "The abstracts are about aerodynamics; engineers wrote the questions.",
    "demo": (
        "Ten questions are in another language, ten use synonyms, ten are paraphrases, and ten are "
        "about parts of compound words. No question shares a whole word with the record that "
        "answers it."
    ),
    "across, with vectors": (
        "Each category names the language of the questions, then the language of the texts."
    ),
    "xquad": "Chinese and Thai are written without spaces between words.",
}

#: Our descriptions of public collections.
KINDS = {
    "locomo": "long personal conversations: each turn is a record, each conversation a connection",
    "cranfield": "1,400 abstracts with graded judgments",
    "xquad": (
        "the same 240 passages, and questions about them, in several languages: each language is "
        "a connection"
    ),
}

FIGURES = ("any", "R@1", "R@3", "R@5", "R@10", "MRR", "nDCG@10")


def render(runs: Sequence[Run], stamp: str) -> str:
    """The page of these runs; `stamp` is the sentence with their date and commit."""
    table = f"{HEAD}{stamp}\n\n{measures_table(runs)}"
    return "\n".join([table, FIGURES_MEAN, *map(_collection, runs), REPEAT])


def measures_table(runs: Iterable[Run]) -> str:
    """All measures as one table."""
    head = ("measure", "figure", "gate", "value", "baseline", "ratio", "verdict")
    return markdown_table(head, [cells(row) for run in runs for row in run.rows])


def cells(row: Row) -> tuple[str, ...]:
    """A measure as the cells of its row."""
    metric = row.measure.metric
    return (
        row.measure.title,
        metric,
        row.gate,
        _number(row.value, metric),
        _number(row.baseline, metric),
        "–" if row.ratio is None else f"{row.ratio:.2f}",
        row.verdict,
    )


def _collection(run: Run) -> str:
    kind = KINDS.get(run.name.removesuffix(MEANING), run.kind)
    kind = kind[0].upper() + kind[1:]
    sentences = [
        f"{kind}. In all: {run.documents:,} documents and {len(run.queries):,} questions.",
        NOTES.get(run.name, ""),
        f"Source: {run.source}." if run.source else "",
    ]
    median, slow = run.milliseconds
    hits = run.mean(lambda answer: len(answer.ids))
    speed = (
        f"The median time per question was {median:.1f} ms, "
        f"and the 95th percentile was {slow:.1f} ms."
    )
    failed = f" Questions refused: {run.failed}." if run.failed else ""
    parts = [
        f"## {run.name}\n",
        " ".join(filter(None, sentences)) + "\n",
        markdown_table(("questions", "category", "n", "search", *FIGURES), _figures(run)),
        f"An answer had {hits:.1f} hits on average. {speed}{failed}\n",
    ]
    if run.bands:
        head = ("coverage of the first hit", "questions", "share with a right first hit")
        parts.append(markdown_table(head, [_band(*band) for band in run.bands]))
    return "\n".join(parts)


def _band(end: float, count: int, share: float) -> tuple[str, ...]:
    return f"{end - BANDS[0]:.1f} to {end:.1f}", f"{count}", f"{share:.2f}"


def _figures(run: Run) -> Iterator[tuple[str, ...]]:
    """Rows of every category as typed, and of the mean in the other ways."""
    for way in (TYPED, TYPOS, SESSIONS):
        categories = list(run.results.get((way, RUNG), ()))
        if way != TYPED or len(categories) == 2:  # a single category is the mean
            categories = [ALL]
        for category in categories:
            for system in (RUNG, FTS5, BM25S):
                figures = run.results.get((way, system), {}).get(category)
                if figures:
                    numbers = (f"{figures[name]:.3f}" for name in FIGURES)
                    yield way, category, f"{figures['n']:.0f}", system, *numbers


def _number(value: float | None, metric: str) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if metric == "bytes" else f"{value:.3f}"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
