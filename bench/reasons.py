"""What was tried for goals that cannot be met, with figures, and what prevents meeting them.

By the key of the row in `goals.py`; the page shows it where the row is missed. Figures are CPU of
one core, taken in turns in one process, where a run of the benchmark is not named.
"""

_REST = (
    "the compiled scorer takes 1 ms of a question of rare words and 5 ms of a natural one. The "
    "rest is Python, with 28,000 function calls for a question of rare words: the windows of ten "
    "hits and their calls take a fifth, fitting the page a fifth, the forms and counts of words a "
    "seventh, and the exact scores of the records at the top an eighth. A question sends a hundred "
    "statements to the database, most of them for a single passage. {} Since November 26, the rate "
    "for rare words without the scorer has fallen from 0.30 to 0.22 of the SDK's. The number of "
    "function calls for such a question over 4,000 records does not depend on the load of the "
    "machine: it was 16,959 then, and is now 25,255, or 16,539 with the scorer. New among these "
    "are checks of the deadline (1,255), promises of rows (755), and the order by coverage and "
    "actor. We tried weighing a hit only once, which saves a third of the fitting. We have not "
    "tried reading all passages of a page at once, making the windows of later hits only as far as "
    "they are shown, or keeping the forms of words between questions."
)

MISSED: dict[str, str] = {
    "natural-sdk": _REST.format("The peers read ten texts and rank in C."),
    "natural-fastmcp": "see `natural-sdk`.",
    "rare-sdk": _REST.format("The peers' statement ranks only 2,600 rows."),
    "rare-fastmcp": "see `rare-sdk`.",
    "natural-plain": (
        "see `natural-sdk`. Without the scorer, Rung searches the texts of 100 records."
    ),
    "rare-plain": "see `rare-sdk` and `natural-plain`.",
    "carried-sdk": (
        "the search itself takes nine tenths of the time, and is the same in both. One worker "
        "answers as many requests a second with one thread as with two or four."
    ),
    "carried-fastmcp": "see `carried-sdk`.",
    "answering": (
        "nearly all of this time is fitting: Rung renders each hit to weigh it, again when it "
        "loses a window, and once more to send it. The calls for natural questions are long, so in "
        "a quarter of the searches, a page ends early and is fitted again."
    ),
    "import-rows": (
        "30,000 rows take 5 s of CPU time in two processes. On a machine that is not calm, the "
        "processes wait for each other and for the disk."
    ),
    "papers": "two runs gave 7.0 to 9.3: the machine varies by more than the difference.",
    "postgres-first": (
        "see `postgres-later`. After a commit, Rung also counts the words again that begin like "
        "those of the question, with one statement for each."
    ),
    "postgres-later": (
        "each word of a question needs a statement that may return thousands of rows, which Python "
        "combines; the scorer works only on files. The server spends a fifth of its time parsing "
        "and planning each statement again: statements are not prepared, because connection "
        "poolers do not keep them. The goal comes from a question of rare words on a faster "
        "machine."
    ),
    "window-0": (
        "two runs gave 1.04 and 1.15. Both windows take 23 ms with 8 clients, and within one run "
        "the machine varies by more than the difference."
    ),
    "rare-million": "see `rare-sdk`.",
    "natural-p95": "see `natural-sdk`.",
    "rare-p95": "see `rare-sdk`.",
    "repeat": (
        "a cached answer takes 0.11 ms of our own time: token, grant, version of the store, rate, "
        "metrics and log line. gunicorn's parser, its hand-over between threads and the socket "
        "take twice as long, and are the same for any answer. With a worker of our own that hands "
        "nothing over, the goal would be met; but we would then maintain a web server, which "
        "others do better."
    ),
    "grant": (
        "a common word ties thousands of records of the connection. In this run, the scores of all "
        "of them were estimated; since then, those of five hundred are, which takes 4 ms instead "
        "of 20. The plain filter always reads the whole store, so the row depends on how long any "
        "search takes: with 10 ms, the goal would be met."
    ),
    "growth": (
        "half of the time was spent looking for the word in the other fields of 4,000 records that "
        "have it in the title, and a third joining every passage with the word to its record "
        "before the newest were selected. Since this run, the first step reads the texts of seven "
        "hundred of these records instead, and the join comes after the sort. A search now takes "
        "75 ms instead of 142 at a million records."
    ),
    "start": "starts take 0.81 to 1.43 s: the machine varies by more than the difference.",
    "rss": (
        "missed by one part in a hundred: Rung takes 53 to 54 MB, and fastmcp 71. Rung used to "
        "take 66 MB at a tenth of the records. One heap for all threads, libraries that are loaded "
        "only when they are used, and an answer cache of 1 MB instead of 8 saved the difference."
    ),
    "adapter": (
        "runs give 1.5 to 3 ms on a machine that is not calm. The adapter's own work takes 1.6 ms "
        "of a core: the request library, gunicorn's parser and Flask each run once more than "
        "without the adapter. The work is a third less than before, because upstreams over plain "
        "`http` are no longer asked to compress their answers."
    ),
    "import": (
        "most rounds give 1.9 to 2.5. The rest is the start of the command, reading, folding, "
        "checking, four indexes and the change log, which the bare insert does without. Building "
        "the indexes after the rows would save half a second, but readers would have no indexes "
        "until then."
    ),
}
