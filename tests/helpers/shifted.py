"""Processes whose clock is off by the seconds in a file, which may change while they run."""

from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from service.place import Database, Place

_HOOK = """
import datetime, time
REAL, OFFSET = time.time, {file!r}

def shifted():
    with open(OFFSET) as file:
        return REAL() + float(file.read())

class Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(shifted(), tz)

time.time, datetime.datetime = shifted, Shifted
"""


class Clock:
    """The clock of processes that have `environment`. `shift` sets it, in seconds."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._file = folder / "offset"
        (folder / "sitecustomize.py").write_text(_HOOK.format(file=str(self._file)))
        self.environment = {"PYTHONPATH": f"{folder}:{root}"}
        self.shift(0)

    def shift(self, seconds: float) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._file)


_SHIFT = """
CREATE TABLE shift (seconds DOUBLE PRECISION);
INSERT INTO shift VALUES (0);
CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$
  SELECT pg_catalog.clock_timestamp() + make_interval(secs => (SELECT seconds FROM shift))
$$
"""


class DatabaseClock:
    """The clock of a database, which its stores use instead of that of their machines."""

    environment: dict[str, str] = {}

    def __init__(self, place: Database) -> None:
        self._url = place.url
        name = urlsplit(place.url).path.strip("/")
        with psycopg.connect(self._url, autocommit=True) as db:
            db.execute(_SHIFT.encode())
            db.execute(f"ALTER DATABASE {name} SET search_path = public, pg_catalog".encode())

    def shift(self, seconds: float) -> None:
        with psycopg.connect(self._url, autocommit=True) as db:
            db.execute("UPDATE shift SET seconds = %s", (seconds,))


def clock_of(place: Place, folder: Path, root: Path) -> "Clock | DatabaseClock":
    """The clock that the store at a place uses; files in `folder` shift that of processes."""
    return DatabaseClock(place) if isinstance(place, Database) else Clock(folder, root)
