"""What was tried for goals that cannot be held, with figures, and what forbids them.

By the key of the row in `goals.py`; the page shows it where the row is missed. Figures are CPU of
one core, taken in turns in one process, where a run of the benchmark is not named.
"""

_READ = (
    "a search ranks 100 candidates by where their words are before it shows ten, while the peers' "
    "bm25 takes 2 µs a row whatever its length and reads ten. {} What was done: candidates are "
    "ordered by the score to be expected from the index (3 ms of a question, for which the hundred "
    "hold 98 % of the best ten for rare words instead of 88 %); texts are ranked as the index "
    "keeps them, folded, and documents are read for hits alone (before and after, in turns with "
    "the SDK: 0.27 and 0.35 of its rate for rare words, 1.8 and 2.1 for natural questions, by "
    "CPU); where words are is compared in full only for the fifth of the candidates that can reach "
    "the page, and parts of a hit are read only if they can add a window; a passage is searched "
    "only for words that its row may have; words are found by searching texts, not by splitting "
    "them (0.7 µs instead of 90); rows come as one JSON array; forms are counted after their stems "
    "are compared. A natural question takes 28 ms of CPU, one of rare words 17: rows of words 6 "
    "and 3, scoring 6 and 3, reading texts 3 and 3, ordering candidates 3 and 3, windows of hits "
    "and their calls 4 and 3, forms 1 and 1, HTTP, MCP, the grant and the text 3 and 3. Tried "
    "without gain: all texts of a question as one string (scanning it takes as long: 550,000 "
    "characters for natural questions, and no text can be left out), sets of records instead of "
    "counting row by row, ending the ranking where no later candidate can reach the tenth (before "
    "a text is read it is not known how often it has a word, so the bound leaves 93 of 100 "
    "candidates of rare words and 96 of natural questions), two passages of a long value instead "
    "of three, three likely passages instead of eight, folded texts joined into one answer, a "
    "longer pause of the garbage collector or none, larger blocks of memory, one thread instead of "
    "two. Tried, but not worth it: ranking fewer candidates (at fifty, 94 to 100 % of the best ten "
    "are left in a part of the grant, but 66 % for a common word over everything); an end of the "
    "ranking that halves the bound (a quarter of the questions lose a hit); pairs that bring at "
    "most 1,500 rows instead of 4,000 (15 % off natural questions, but 16 % of their hits change). "
    "Not tried: positions of words as arrays of numbers, which would need numpy, and compiled code."
)

MISSED: dict[str, str] = {
    "natural-sdk": _READ.format("Pairs of common words take most of the rest."),
    "natural-fastmcp": "as `natural-sdk`.",
    "rare-sdk": _READ.format("The statement of the peers ranks 2,600 rows only."),
    "rare-fastmcp": "as `rare-sdk`.",
    "carried-sdk": (
        "the search itself is nine tenths of the time, and it is the same in both. One worker "
        "with one thread, two or four answers as many requests a second."
    ),
    "carried-fastmcp": "as `carried-sdk`.",
    "window-0": (
        "1.04 and 1.15 in two runs. Both windows take 23 ms with 8 clients, and within one run "
        "the machine varies by more than the difference."
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
        "a common word ties thousands of records of the connection. Their scores were estimated "
        "for all of them in this run; since then for five hundred, which takes 4 ms instead of 20. "
        "The plain filter takes its time for the whole store, so the row is a matter of what a "
        "search takes at all: 10 ms would hold it."
    ),
    "growth": (
        "half of the time looked for the word in the other fields of 4,000 records that have it in "
        "the title, and a third joined every passage with the word to its record before the newest "
        "were taken. Since this run the first reads the texts of seven hundred of them instead, "
        "and the join comes after the sort: 75 ms instead of 142 at a million records."
    ),
    "start": "0.81 to 1.43 s from one start to the next: the machine varies by more than this.",
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
