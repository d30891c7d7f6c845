"""Datasette with one canned query over the file, under uvicorn like the others."""

import os
import sys
from pathlib import Path

from bench.peers import plain, uvicorned
from datasette.app import Datasette

CANNED = "search"
HITS = 10
SQL_MILLISECONDS = 60_000  # the default is one second

database = Path(os.environ[plain.DATABASE])
sql = plain.SEARCH.replace("?", ":q", 1).replace("?", str(HITS))
served = Datasette(
    immutables=[str(database)],
    metadata={"databases": {database.stem: {"queries": {CANNED: {"sql": sql}}}}},
    settings={"sql_time_limit_ms": SQL_MILLISECONDS},
)

if __name__ == "__main__":
    uvicorned.serve(served.app(), int(sys.argv[1]))
