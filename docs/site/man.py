"""Writes man pages from the help of the commands, one for each, into the directory given."""

import sys
from pathlib import Path

from click_man.core import write_man_pages

from evidence.version import VERSION
from service.__main__ import rung
from service.cli.deferred import loaded

if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    rung.commands = {name: loaded(command) for name, command in rung.commands.items()}
    write_man_pages("rung", rung, version=VERSION, target_dir=str(target))
