"""`rung` as a person runs it: in this process, in a real shell, on a terminal."""

import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

import click
import orjson
from click.testing import CliRunner, Result
from pytest import MonkeyPatch

from evidence.model import Continuation
from service.__main__ import rung
from service.cli.commands import Spelling
from service.cli.reading import ENTRIES
from tests.helpers.stdio import ROOT, environment
from tests.helpers.waiting import WAIT_SECONDS

SPELL = Spelling(("rung",), ENTRIES)

#: Runs commands in one process, which is faster than one process each.
SEVERAL = """
import json, sys
from service.__main__ import rung
for words in json.loads(sys.argv[1]):
    try:
        rung(words, prog_name="rung")
    except SystemExit:
        pass
"""

#: The end of a question of yes or no.
QUESTION = b"[y/N]:"
#: Comes before a command template, which a page has for the fields that it shows whole.
FORM = "to read any field: "
_COMMAND = re.compile(r"(?:^|\s)(?:(\w+): )?(rung .+)$")


@dataclass(frozen=True, slots=True)
class Shell:
    """A person at a shell: their environment variables and their folder."""

    environ: Mapping[str, str]
    folder: Path = ROOT

    def run(self, *words: str, typed: str | None = None) -> Result:
        """Runs a command in this process, without a terminal; `typed` is its standard input."""
        cleared = {name: None for name in os.environ if name.startswith(("RUNG_", "PDPP_"))}
        with MonkeyPatch.context() as patch:
            patch.setattr(os, "nice", lambda increment: 0)  # later tests keep their priority
            return CliRunner().invoke(rung, words, input=typed, env={**cleared, **self.environ})

    def ok(self, *words: str) -> Result:
        result = self.run(*words)
        assert result.exit_code == 0, (words, result.output, result.exception)
        return result

    def line(self, command: str) -> Result:
        """Runs a command as it was printed."""
        name, *words = shlex.split(command)
        assert name == "rung", command
        return self.run(*words)

    def bash(self, script: str) -> subprocess.CompletedProcess[str]:
        """Runs a script in a real shell, where `rung` is the command of this checkout."""
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        return subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            timeout=WAIT_SECONDS,
            text=True,
            cwd=self.folder,
            env=environment(**self.environ, PATH=path),
        )

    def terminal(self, *words: str, columns: int = 100, answer: str = "") -> str:
        """The output of a command on a terminal of this width; its question gets the answer."""
        return self.terminals(words, columns=columns, answer=answer)

    def terminals(self, *commands: tuple[str, ...], columns: int = 100, answer: str = "") -> str:
        """The output of several commands on one terminal, one after another."""
        ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        more = {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
        process = subprocess.Popen(
            [sys.executable, "-c", SEVERAL, orjson.dumps(commands).decode()],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
            env=environment(**{**more, **self.environ}),
        )
        os.close(theirs)
        shown = b""
        while piece := _piece(ours):
            shown += piece
            if answer and QUESTION in shown:
                os.write(ours, f"{answer}\n".encode())
                answer = ""
        os.close(ours)
        process.wait(WAIT_SECONDS)
        return shown.decode().replace("\r\n", "\n")


def _piece(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other side is closed
        return b""


def root_context() -> click.Context:
    """The context in which to parse a `rung` command; it keeps the help option of the first one."""
    return click.Context(rung, **rung.context_settings)


def words_of(tool: str, args: Mapping[str, object]) -> list[str]:
    """The command-line words equivalent to a tool call."""
    return shlex.split(SPELL(Continuation(tool, dict(args), "")))[1:]


def printed(text: str, why: str | None = None) -> list[str]:
    """The commands on the lines of a text; only those of one kind if it is given."""
    lines = [line for line in text.split("\n") if not line.startswith(FORM)]
    found = [match for line in lines if (match := _COMMAND.search(line))]
    return [match[2] for match in found if why is None or match[1] == why]
