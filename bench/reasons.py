"""What was tried for goals that cannot be held, with figures, and what forbids them.

By the key of the row in `goals.py`; the page shows it where the row is missed. Figures are CPU of
one core, taken in turns in one process, where a run of the benchmark is not named.
"""

MISSED: dict[str, str] = {
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
