"""The rows of docs/figures.md: each fault, the expected behavior, and the tests for it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Row:
    """One fault. `tests` are for pytest; `command` and `short` are arguments of `python -m`.

    `short` is the form of `command` that `.ci/run` runs; its other jobs run the tests. A row that
    is `long` runs only if it is named.
    """

    number: int
    done: str
    holds: str
    tests: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    long: bool = False


ROWS: Final = (
    Row(
        1,
        "Generated JSON-RPC bodies for old and new protocol revisions, for records and papers; "
        "arbitrary bytes, addresses, URIs and arguments; generated REST requests checked against "
        "`/openapi.json`",
        "No answer has a 5xx status or the code `-32603`; every answer matches its schema",
        (
            "tests/figures/test_bodies.py",
            *("tests/spec/test_hostile_bodies.py", "tests/spec/test_bad_input_fuzz.py"),
            *("tests/spec/test_papers_fuzz.py", "tests/spec/test_openapi_fuzz.py"),
        ),
        ("tests.fuzz", "--examples", "200"),
        ("tests.fuzz", "--examples", "5"),
    ),
    Row(
        2,
        "SIGTERM, sent three times to the server or to every process, while clients open and reuse "
        "connections; SIGHUP and the recycling of workers (`--max-requests`) under load",
        "No request is lost",
        ("tests/spec/test_operations_draining.py", "tests/figures/test_signals.py"),
    ),
    Row(
        3,
        "`kill -9` of a worker under load",
        "Only that worker's requests are lost; no truncated body looks complete",
        ("tests/figures/test_killed_workers.py",),
    ),
    Row(
        4,
        "A power cut at any disk write of an import, revocation or migration (unsynced data is "
        "dropped); commands killed at any moment; a full disk; a disk that becomes "
        "read-only under a running server; a folder without write permission",
        "The store opens; all acknowledged data is there; nothing is half-written",
        (
            *("tests/cli/test_power_cut.py", "tests/cli/test_full_disk.py"),
            *("tests/cli/test_upkeep_killed.py", "tests/cli/test_import_interrupted.py"),
            *("tests/spec/test_store_advice.py", "tests/spec/test_failing_disk.py"),
        ),
    ),
    Row(
        5,
        "Store and snapshot replaced under load; files that are corrupt, truncated, or from "
        "another program or a newer version",
        "No answer is wrong; a snapshot that cannot be used leaves the old one in use, and "
        "`/readyz` reports the reason",
        (
            *("tests/figures/test_swaps.py", "tests/spec/test_replaced_store.py"),
            *("tests/spec/test_papers_swap.py", "tests/spec/test_damaged_index.py"),
            "tests/unit/service/papers/test_generations.py",
        ),
    ),
    Row(
        6,
        "Sources and asset servers that hang, send slowly, reset connections, or send false data "
        "or gzip bombs",
        "A typed error is returned before the deadline; memory stays bounded; other requests are "
        "answered",
        (
            *("tests/spec/test_bad_upstreams.py", "tests/spec/test_swollen_bodies.py"),
            *("tests/unit/service/test_outbound.py", "tests/cli/test_hostile_servers.py"),
            "tests/unit/service/papers/test_remote_assets.py",
            "tests/unit/service/sources/test_http_quirks.py",
        ),
    ),
    Row(
        7,
        "Slow clients of every kind, hundreds of idle connections, half-sent requests",
        "Other clients are served; faulty requests get 400, 408, 413, 414 or 431; memory stays "
        "bounded",
        ("tests/spec/test_slow_clients.py", "tests/unit/service/test_request_buffer.py"),
    ),
    Row(
        8,
        "A real nginx with its default settings, HTTP/1.0, buffering and gzip; squid in front of "
        "the server and as the proxy of clients; proxies that strip headers or rewrite bodies; "
        "systemd socket activation",
        "Every flow works, or `rung doctor` names the faulty hop",
        ("tests/deploy", "tests/cli/test_doctor.py"),
    ),
    Row(
        9,
        "Random grants and calls on every route, over a store whose texts are canaries (unique "
        "words); answers and the log are searched for canaries",
        "Nothing leaks; hidden records change no answer; calls for absent and for hidden records "
        "get the same answer",
        (
            *("tests/spec/test_grant_isolation.py", "tests/spec/test_non_interference.py"),
            *("tests/spec/test_no_oracle.py", "tests/spec/test_papers_access.py"),
        ),
    ),
    Row(
        10,
        "Hostile records in text, JSON, command output, CSV and pages; a parser reads the texts "
        "back",
        "Record data is never interpreted",
        (
            *("tests/unit/evidence/test_text.py", "tests/unit/renderers/test_search_text.py"),
            *("tests/spec/test_exact_out.py", "tests/journeys/test_no_dead_ends.py"),
            "tests/unit/renderers/test_bounds.py",
        ),
    ),
    Row(
        11,
        "Path traversal through ids, cursors, templates, assets and blobs; addresses of other "
        "servers in the same places; redirects to other servers",
        "No file outside the store and the snapshot is opened; no other server gets a request",
        (
            *("tests/figures/test_paths.py", "tests/unit/service/papers/test_assets.py"),
            *("tests/unit/service/test_outbound.py", "tests/spec/test_hosts.py"),
        ),
    ),
    Row(
        12,
        "A read-only root file system, no home folder, 64 MB for temporary files, no network; a "
        "container user who owns no files; a read-only snapshot; a downloaded store",
        "All requests are answered",
        (
            *("tests/spec/test_deployment.py", "tests/spec/test_fetched_store.py"),
            "tests/spec/test_confined.py",
        ),
    ),
    Row(
        13,
        "A clock set forward and back; daylight-saving changes in every time zone",
        "No expired token, session, link or grant becomes valid again; `aggregate` counts each "
        "record in the right minute, hour or day",
        (
            *("tests/spec/test_clock.py", "tests/unit/service/records/test_local_time.py"),
            *("tests/spec/test_ended_tokens.py", "tests/unit/service/records/test_aggregate.py"),
            "tests/spec/sign_in/test_clock_set_back.py",
        ),
    ),
    Row(
        14,
        "Mixed load for an hour, while imports and grants change the store (`make soak`)",
        "Memory, open files and the log stay bounded; no response has a wrong status",
        command=("bench.soak", "--seconds", "3600"),
        short=("bench.soak", "--seconds", "30", "--records", "20000"),
        long=True,
    ),
    Row(
        15,
        "`make audit`: known vulnerabilities, licenses, a bill of materials, pinned hashes",
        "No findings other than documented exceptions; open if no vulnerability database answers",
        command=("tests.figures.audit",),
        short=("tests.figures.audit", "--offline"),
    ),
    Row(
        16,
        "Hostile files in every format; hostile archives, links, pipes and file names, each "
        "imported with `rung import`; sample files with changed values and flipped bytes",
        "The import ends in bounded time and memory, without a traceback; every refusal is "
        "explained, and the other files are in the store",
        (
            *("tests/figures/test_hostile_files.py", "tests/formats/test_changed_values.py"),
            *("tests/formats/test_patterns.py", "tests/formats/test_parsing_process.py"),
        ),
    ),
    Row(
        17,
        "Hostile clients that send each kind of costly call, alone and in batches, for 60 seconds, "
        "while another client searches 100,000 records on a worker with two threads: first one "
        "hostile client with 8 connections, then four, each with its own grant",
        "The 95th percentile of the client's search times is at most 3 times what it is without "
        "these calls; the longest search takes at most 2 seconds; with four hostile clients, the "
        "limits are 10 times and 6 seconds",
        ("tests/spec/test_turns.py",),
        command=("tests.figures.busy",),
        short=(
            *("tests.figures.busy", "--records", "5000", "--seconds", "5"),
            *("--kinds", "prefixes", "unknown words x 20", "--unbounded"),
        ),
        long=True,
    ),
    Row(
        18,
        "A client on another port of Rung's host, with a grant for one stream, that tries "
        "redirects, links, posts, frames and fetches for every path on 127.0.0.1, localhost, [::1] "
        "and rung.localhost, in Chromium and Firefox, while the owner and a reader are signed in",
        "The client never receives anything that opens more than the sign-in page",
        (
            "tests/browser/test_hostile_client.py",
            *("tests/browser/test_session_path.py", "tests/spec/sign_in/test_session_path.py"),
        ),
    ),
    Row(
        19,
        "Records that name the blobs and hashes of other records; backups written over database "
        "files that have a log; commands killed while they replace a file; restored older backups "
        "and PostgreSQL failovers that lose commits, followed by as many new commits; stores that "
        "an older version of Rung wrote; records moved out of and into a grant's time range",
        "A record gives access only to the bytes that came with it; a replaced file is always the "
        "whole old file or the whole new one; revoked tokens stay revoked, unless a failover loses "
        "the revocation itself; bookmarks of lost commits return 410, and bookmarks from before "
        "an upgrade of the store keep working; a feed contains only what the grant covers",
        (
            *("tests/spec/test_forged_blobs.py", "tests/cli/test_replaced_files.py"),
            *("tests/spec/test_replaced_store.py", "tests/spec/test_lost_commits.py"),
            *("tests/spec/test_upgraded_stores.py", "tests/spec/test_feeds_of_ranges.py"),
            "tests/postgres/test_failover.py",
        ),
    ),
)
