"""What was tried for goals that cannot be held, with figures, and what forbids them.

By the key of the row in `goals.py`; the page shows it where the row is missed. Figures are CPU of
one core, taken in turns in one process, where a run of the benchmark is not named.
"""

_READ = (
    "a search ranks 100 candidates by where their words are before it shows ten. Nine in ten of "
    "them are records of more than 2,048 characters, because long records have most words, while "
    "the peers' bm25 takes 2 µs a row whatever its length and reads ten. {} What was done: texts "
    "are ranked as the index keeps them, folded, and documents are read for hits alone (before and "
    "after, in turns with the SDK: 0.27 and 0.35 of its rate for rare words, 1.8 and 2.1 for "
    "natural questions, by CPU); where words are is compared in full only for the fifth of the "
    "candidates that can reach the page, and parts of a hit are read only if they can add a window "
    "(5 % off natural questions); a passage is searched only for words that its row may have; "
    "words are found by searching texts, not by splitting them (0.7 µs instead of 90); rows come "
    "as one JSON array; forms are counted after their stems are compared. The rest is spread: "
    "scoring a fifth, rows of words a seventh, windows of hits and their calls a fifth, reading "
    "texts a fifth, HTTP, MCP and the grant a sixth; no line has more than 4 %. Tried without "
    "gain: ending the ranking where no later candidate can reach the tenth (before a text is read "
    "it is not known how often it has a word, so the bound leaves 93 of 100 candidates of rare "
    "words and 96 of natural questions), two passages of a long value instead of three, three "
    "likely passages instead of eight, folded texts joined into one answer, a longer pause of the "
    "garbage collector or none, larger blocks of memory. Tried, but not worth it: ranking fewer "
    "candidates (one in twenty of the ten best is among the last twenty of the hundred, and at "
    "fifty Cranfield falls below its gate); an end of the ranking that halves the bound (15 % "
    "less to rank, but a quarter of the questions lose a hit); pairs that bring at most 1,500 rows "
    "instead of 4,000 (15 % off natural questions, but 16 % of their hits change). Not tried: "
    "positions of words as arrays of numbers, which would need numpy, and compiled code."
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
    "window-0": (
        "1.00 in the run before. Both windows take 23 ms with 8 clients, and within one run this "
        "machine varies by more than the difference."
    ),
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
