"""What was tried for goals that cannot be met, with figures, and what prevents meeting them.

By the key of the row in `goals.py`; the page shows it where the row is missed. Figures are CPU of
one core, taken in turns in one process, where a run of the benchmark is not named.
"""

_REST = (
    "a question of rare words takes the compiled scorer 1 ms, and a natural question 5 ms. The "
    "rest is Python, with 28,000 function calls for a question of rare words: building the windows "
    "of ten hits and their calls takes a fifth of the time, fitting the page to its size limit a "
    "fifth, finding the forms and counts of words a seventh, and computing the exact scores of the "
    "best records an eighth. Rung sends a hundred statements to the database for each question, "
    "most of them for a single passage. {} Since November 26, the rate for rare words without the "
    "scorer has fallen from 0.30 to 0.22 of the SDK's rate. The number of function calls for such "
    "a question over 4,000 records does not depend on the load of the machine. Without the scorer, "
    "it was 16,959 on November 26, and is now 25,255; with the scorer, it is now 16,539. The new "
    "calls include checks of the deadline (1,255), requests for rows that are read later (755), "
    "and the ordering by coverage and actor. We tried measuring the size of each hit only once, "
    "which saves a third of the fitting. We have not tried reading all passages of a page at once, "
    "building the windows of later hits only as far as they are shown, or keeping the forms of "
    "words between questions."
)

MISSED: dict[str, str] = {
    "natural-sdk": _REST.format("The peers read only ten texts, and rank in C."),
    "natural-fastmcp": "see `natural-sdk`.",
    "rare-sdk": _REST.format("The peers' statement ranks only 2,600 rows."),
    "rare-fastmcp": "see `rare-sdk`.",
    "natural-plain": (
        "see `natural-sdk`. Without the scorer, Rung searches the texts of 100 records."
    ),
    "rare-plain": "see `rare-sdk` and `natural-plain`.",
    "carried-sdk": (
        "the search itself takes nine tenths of the time, and is the same on both servers. One "
        "worker answers as many requests a second with one thread as with two or four."
    ),
    "carried-fastmcp": "see `carried-sdk`.",
    "answering": (
        "nearly all of this time is spent fitting the page to its size limit: Rung renders each "
        "hit to measure its size, again if the hit loses a window, and once more to send it. The "
        "calls for natural questions are long, so a quarter of the pages end early and are fitted "
        "again."
    ),
    "import-rows": (
        "30,000 rows take 5 s of CPU time in two processes. On a busy machine, the processes wait "
        "for each other and for the disk."
    ),
    "papers": (
        "two runs gave ratios from 7.0 to 9.3: results on the same machine vary by more than the "
        "distance to the goal."
    ),
    "postgres-first": (
        "see `postgres-later`. After a commit, Rung also sends a second statement for each word of "
        "the question, to count the words that begin with the same letters."
    ),
    "postgres-later": (
        "Rung sends a statement for each word of a question. A statement may return thousands of "
        "rows, which Python combines, because the scorer works only on files. The database server "
        "spends a fifth of its time parsing and planning each statement again: Rung does not "
        "prepare statements, because connection poolers do not keep prepared statements. The goal "
        "was set with a question of rare words on a faster machine."
    ),
    "window-0": (
        "two runs gave 1.04 and 1.15. Both windows take 23 ms with 8 clients, and results within "
        "one run vary by more than the distance to the goal."
    ),
    "rare-million": "see `rare-sdk`.",
    "natural-p95": "see `natural-sdk`.",
    "rare-p95": "see `rare-sdk`.",
    "repeat": (
        "Rung's own work for a cached answer takes 0.11 ms: it checks the token, the grant, the "
        "version of the store and the rate, and writes the metrics and the log line. gunicorn's "
        "parser, its handover between threads and the socket take twice as long, and are the same "
        "for every answer. A worker of our own without this handover would meet the goal, but we "
        "would then have to maintain a web server, which others do better."
    ),
    "grant": (
        "with a common word, thousands of records of the connection have the same score. Rung used "
        "to estimate the scores of all these records; it now estimates only five hundred, which "
        "takes 4 ms instead of 20. The plain filter always reads the whole store, so the row "
        "depends on how long any search takes: at 10 ms, the goal would be met."
    ),
    "growth": (
        "Rung used to spend half of the time looking for the word in the other fields of 4,000 "
        "records that contain the word in the title. It spent another third joining every passage "
        "that contains the word to its record before it selected the newest passages. Now, Rung "
        "reads the texts of only seven hundred of these records, and joins after sorting. At a "
        "million records, a search takes 75 ms instead of 142."
    ),
    "start": (
        "starts take 0.81 to 1.43 s: results on the same machine vary by more than the distance to "
        "the goal."
    ),
    "rss": (
        "missed by 1%: Rung takes 53 to 54 MB, and fastmcp 71. Rung used to take 66 MB with a "
        "tenth of the records. One heap for all threads, libraries that are loaded only when they "
        "are used, and an answer cache of 1 MB instead of 8 account for the difference."
    ),
    "adapter": (
        "on a busy machine, runs give 1.5 to 3 ms. The adapter's own work takes 1.6 ms of CPU "
        "time: the request library, gunicorn's parser and Flask each run once more than without "
        "the adapter. This work is a third less than before, because Rung no longer asks upstreams "
        "over plain `http` to compress their answers."
    ),
    "import": (
        "earlier runs gave ratios from 1.9 to 2.5; one of November 29 gave 9.5: Rung imported "
        "1,749 records a second, and the bare insert 18,898. In a profile of 40,000 records, a "
        "third of the time went into the statements that write the records, their indexes and the "
        "change log, and an eighth into counting words, which corrects misspelled queries. The "
        "bare insert writes one index only. We have not examined what made imports slower since."
    ),
}
