"""Processes whose clock is off by the seconds in a file, which may change while they run."""

from pathlib import Path

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
