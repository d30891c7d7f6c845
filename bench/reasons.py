"""What was tried for goals that cannot be held, with figures, and what forbids them.

By the key of the row in `goals.py`; the page shows it where the row is missed. Figures are CPU of
one core, taken in turns in one process, where a run of the benchmark is not named.
"""

_READ = (
    "a search reads 100 candidates in full, with their passages, before it shows ten: half of its "
    "time. Nine in ten of them are records of more than 2,048 characters, for long records hold "
    "most words, while the peers' bm25 takes 2 µs a row whatever its length and reads ten. {} What "
    "was done: words are found by searching texts, not by splitting them (0.7 µs instead of 90), "
    "only those that the index does not rule out; rows come as one JSON array; forms are counted "
    "after their stems are compared; the newest rows of a word are one scan instead of 1,024 "
    "statements. In this process a search of rare words went from 0.1 to 0.24 of the peers' "
    "statement, a natural question from 0.8 to 1.6 times. Passages as columns of numbers, kept for "
    "the ranked records only, calls that look for words the record may hold, and stems kept from "
    "question to question took off another quarter. Of a search of rare words, 33 % is now "
    "folding and scoring, 13 % windows, 12 % loading records, 13 % candidates and their order, "
    "5 % looking up words, 4 % rendering, 7 % HTTP, MCP and the grant; no line has more than 4 %. "
    "Tried without gain: ending the ranking where no later candidate can reach the tenth (before "
    "a text is read it is not known how often it has a word, so that the bound leaves 93 of 100 "
    "candidates of rare words and 96 of natural questions; 43 and 70 if words occurred three "
    "times at most), records in one JSON text instead of rows (twice the time of loading them), "
    "picking the words a record may hold once for all its texts (3 % of scoring), "
    "looking for words by passage instead of by record, and, at most 1 % each, noting by sets what "
    "candidates hold, no search for the best place of one word, keeping the chunk that was read "
    "last. One passage instead of three that hold the same rare words takes 7 % less, but changes "
    "half of the pages of rare words and three quarters of the others."
)

MISSED: dict[str, str] = {
    "natural-sdk": _READ.format("Pairs of common words take most of the rest."),
    "natural-fastmcp": "as `natural-sdk`.",
    "rare-sdk": _READ.format("The statement of the peers ranks 2,600 rows only."),
    "rare-fastmcp": "as `rare-sdk`.",
    "carried-sdk": (
        "the search itself is most of the time, and it is the same in both. It was 0.64 while "
        "SQLite gave up the lock of the interpreter at every row, and two threads on one core "
        "waited for it, where an event loop works on alone; 1.57 with rows as one JSON array."
    ),
    "carried-fastmcp": "as `carried-sdk`.",
    "rare-million": "as `rare-sdk`.",
    "natural-p95": "as `natural-sdk`.",
    "rare-p95": "as `rare-sdk`.",
    "repeat": (
        "a kept answer takes 0.11 ms of ours: token, grant, version of the store, rate, "
        "metrics, log line. gunicorn's parser, its hand-over between threads and the socket "
        "take twice that, and are the same for any answer. A worker of our own that hands "
        "nothing over would hold the row; it would be a web server of our own, which others "
        "keep better."
    ),
    "grant": (
        "in the store alone it is 0.027 to 0.032; the rest of a request, 1 ms, comes on top. "
        "Half of the store's time is bm25 going through the word in the whole index for its "
        "frequency, 0.02 µs a row. Only an index for each connection does without, and its "
        "scores could not be compared with those of another one."
    ),
    "rss": (
        "by one part in a hundred: 53 to 54 MB of 71. It was 66 MB at a tenth of the records; "
        "one heap for all threads, libraries that are loaded when they are used, and an answer "
        "cache of 1 MB instead of 8 took off the rest."
    ),
    "adapter": (
        "1.5 to 3 ms from run to run on a machine that is not calm. The adapter's own work "
        "is 1.6 ms of a core: the request library, gunicorn's parser and Flask, each once "
        "more than without it. Since neighbours are not asked to pack their answers it is a "
        "third less than it was."
    ),
    "import": (
        "1.9 to 2.5 in most rounds: the start of the command, reading, folding, checking, "
        "four indexes and the log of changes, which the bare insert does without. Building "
        "the indexes after the rows would save half a second, and readers would be without "
        "them meanwhile."
    ),
}
