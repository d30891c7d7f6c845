"""Databases made to stop or swell an import, and damaged ones."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from tests.formats.hostile.files import Hostile, kind

USUAL = "CREATE TABLE tide (id INTEGER PRIMARY KEY, t); INSERT INTO tide VALUES (1, 'ebb');"
COUNT = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n{}) SELECT {} FROM n"
#: A column of the usual table that is computed when it is read.
COMPUTED = {
    "blob": "zeroblob(500000000)",
    "texts": "printf('%.*c', 400000000, 'x')",
    "hex": "hex(zeroblob(200000000))",
    "replace": "replace(hex(zeroblob(20000000)), '0', 'xxxxxxxx')",
    "like": f"printf('%.*c', 30000, 'a') LIKE '{'%a' * 40}b'",
    "glob": f"printf('%.*c', 30000, 'a') GLOB '{'*a' * 40}b'",
}
SCRIPTS = {
    **{name: f"ALTER TABLE tide ADD COLUMN x AS ({value})" for name, value in COMPUTED.items()},
    "blobs": ";".join(f"ALTER TABLE tide ADD x{n} AS (zeroblob(200000000))" for n in range(20)),
    "view": f"CREATE VIEW v AS {COUNT.format('', 'x')}",
    "large": "CREATE TABLE b (x); INSERT INTO b VALUES (zeroblob(200000000))",
    "columns": f"CREATE TABLE w ({','.join(f'c{n}' for n in range(1_900))});"
    " INSERT INTO w (c1) VALUES (1)",
    "tables": ";".join(f"CREATE TABLE t{n} (x); INSERT INTO t{n} VALUES (1)" for n in range(200)),
    "names": 'CREATE TABLE "a""];--\nb" ("x]""y" TEXT, [" "] TEXT);'
    ' INSERT INTO "a""];--\nb" VALUES (1, 2)',
    "keys": "CREATE TABLE k (id INTEGER PRIMARY KEY, a REFERENCES k, b REFERENCES none(x));"
    " INSERT INTO k VALUES (1, 1, 1)",
    "cycle": "CREATE TABLE p (id INTEGER PRIMARY KEY, name, o REFERENCES q);"
    " CREATE TABLE q (id INTEGER PRIMARY KEY, name, o REFERENCES p);"
    " INSERT INTO p VALUES (1, x'ff', 1); INSERT INTO q VALUES (1, 1e999, 1)",
    "types": "CREATE TABLE y (id, x);"
    " INSERT INTO y VALUES (1, CAST(x'ff00fe' AS TEXT)), (9e999, -9e999), (NULL, x'')",
    "index": "CREATE TABLE i (x, y AS (abs(x))); INSERT INTO i (x) VALUES (1)",
    "strict": "CREATE TABLE s (t); INSERT INTO s VALUES ('no json');"
    " ALTER TABLE s ADD x AS (json(t))",
    "search": "CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('tide')",
}


CHATS = (
    "CREATE TABLE handle (id); CREATE TABLE chat (guid, chat_identifier, display_name);"
    " CREATE TABLE chat_message_join (chat_id, message_id);"
    " CREATE TABLE chat_handle_join (chat_id, handle_id);"
    " CREATE TABLE attachment (filename); CREATE TABLE message_attachment_join"
    " (message_id, attachment_id); CREATE TABLE message (guid, text, attributedBody, handle_id,"
    " date, is_from_me, associated_message_guid, associated_message_type);"
)
STRING = "4e53537472696e6701948401"
CHATS_OF_MESSAGES = {
    "columns": "ALTER TABLE message DROP COLUMN guid",
    "types": "INSERT INTO message VALUES (x'ff', x'ff', 5, 'x', 'y', 1e999, 5, 5),"
    " (NULL, 5, 'x', NULL, -9223372036854775808, NULL, x'00', 2000)",
    "lengths": f"INSERT INTO message (attributedBody) VALUES (x'{STRING}2b82ffffffff'),"
    f" (x'{STRING}2b'), (x'{STRING}2b81ff'), (zeroblob(30000000))",
    "strings": f"INSERT INTO message (attributedBody) VALUES (x'{STRING * 100_000}')",
    "reactions": "INSERT INTO message (guid, associated_message_guid, associated_message_type)"
    f" {COUNT.format(' LIMIT 100000', 'x, x, 2000 + x % 2000')}",
    "chats": f"INSERT INTO chat_handle_join {COUNT.format(' LIMIT 100000', 'x % 3, 1')};"
    " INSERT INTO handle VALUES (zeroblob(1000)); INSERT INTO chat VALUES (1, 2, 3)",
    "view": "DROP TABLE handle; CREATE TABLE handle (id, x AS (zeroblob(200000000)))",
}


def database(folder: Path, name: str, script: str) -> Path:
    with closing(sqlite3.connect(folder / f"{name}.sqlite")) as db:
        db.executescript(f"{USUAL} {script}")
    return folder / f"{name}.sqlite"


def damaged(folder: Path, name: str, change: Callable[[bytearray], object]) -> None:
    rows = f"INSERT INTO tide (t) {COUNT.format(' LIMIT 3000', 'hex(randomblob(20))')}"
    path = database(folder, name, rows)
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def overwrite(place: int, content: bytes, file: bytearray) -> None:
    file[place : place + len(content)] = content


@kind
def databases_of_messages() -> Iterator[Hostile]:
    for name, script in CHATS_OF_MESSAGES.items():
        yield Hostile(name, lambda folder, n=name, s=script: database(folder, n, CHATS + s))


@kind
def databases() -> Iterator[Hostile]:
    for name, script in SCRIPTS.items():
        yield Hostile(name, lambda folder, n=name, s=script: database(folder, n, s))
    changes: dict[str, Callable[[bytearray], object]] = {
        "header": partial(overwrite, 16, b"\x00\x03\xff\xff\xff"),
        "pages": partial(overwrite, 28, b"\xff\xff\xff\xff"),
        "schema": partial(overwrite, 100, b"\xff" * 300),
        "root": partial(overwrite, 4_096, b"\x05\xff\xff\xff\xff\xff\xff"),
        "cycle": lambda file: overwrite(4_096, bytes(file[:4_096]), file),
        "zeros": lambda file: overwrite(8_192, bytes(20_000), file),
        "cells": lambda file: overwrite(12_288 + 8, b"\xff" * 400, file),
        "cut": lambda file: file.__delitem__(slice(len(file) // 2, None)),
        "short": lambda file: file.__delitem__(slice(90, None)),
        "log": partial(overwrite, 18, b"\x02\x02"),
    }
    for name, change in changes.items():
        yield Hostile(
            f"damaged-{name}", lambda folder, n=name, c=change: damaged(folder, f"damaged-{n}", c)
        )
    for seed in range(8):

        def flip(file: bytearray, seed: int = seed) -> None:
            draw = random.Random(seed)
            for _ in range(40):
                file[draw.randrange(100, len(file))] = draw.randrange(256)

        yield Hostile(
            f"flipped-{seed}", lambda folder, s=seed, f=flip: damaged(folder, f"flipped-{s}", f)
        )
