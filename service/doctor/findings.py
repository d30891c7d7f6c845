"""The result of a check: a line, its meaning, and a fix. `findings.toml` lists the problems."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

_FILE: Final = Path(__file__).with_name("findings.toml")
PROBLEMS: Final[dict[str, dict[str, str]]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
INDENT: Final = " " * 16
SAID_CHARS: Final = 2_000  # of a line; servers write some of the text, and could fill a screen
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one step. `change` is the fix, literally if it is known.

    `verdict` is ok, warn, FAIL or skip.
    """

    verdict: str
    message: str
    meaning: str = ""
    change: str = ""
    step: str = ""

    def lines(self) -> Iterator[str]:
        """The lines to print, without control characters: servers write some of the text."""
        yield plain(f"{self.verdict:<5} {self.step:<9} {self.message}")
        for name, text in (("meaning:", self.meaning), ("change: ", self.change)):
            if text:
                yield plain(f"{INDENT}{name} {text}")

    def json(self) -> dict[str, Any]:
        members = {"step": self.step, "verdict": self.verdict.lower(), "told": plain(self.message)}
        details = {"meaning": self.meaning, "change": self.change}
        return members | {name: plain(text) for name, text in details.items() if text}


def plain(text: str) -> str:
    """Text on one line of a terminal, truncated if it is long."""
    cut = text if len(text) <= SAID_CHARS else text[: SAID_CHARS - 1] + "…"
    return "".join(char if char.isprintable() else " " for char in cut)


def ok(message: str) -> Finding:
    return Finding("ok", message)


def problem(name: str, /, **facts: Any) -> Finding:
    """The problem `name` of `findings.toml`, its texts completed with `facts`."""
    texts = {key: text.format(**facts) for key, text in PROBLEMS[name].items()}
    return Finding(**{"verdict": "FAIL", **texts})


def skip(message: str) -> Finding:
    return Finding("skip", message)


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """One step of the checks, and the steps it requires."""

    name: str
    run: Callable[[S], Finding]
    needs: tuple[str, ...] = ()


def walk(steps: Iterable[Step[S]], state: S) -> Iterator[Finding]:
    """Runs the steps in order; skips those whose requirements failed."""
    unmet: set[str] = set()
    for step in steps:
        missing = [name for name in step.needs if name in unmet]
        finding = step.run(state) if not missing else skip(f"not checked: needs {missing[0]}")
        if finding.verdict in ("FAIL", "skip"):
            unmet.add(step.name)
        yield replace(finding, step=step.name)


def summary(findings: Sequence[Finding]) -> str:
    """The last line: how many steps failed, and the first of them."""
    steps: dict[str, list[str]] = {"FAIL": [], "warn": [], "skip": [], "ok": []}
    for finding in findings:
        steps[finding.verdict].append(finding.step)
    text = f"No step failed ({len(findings)} steps)."
    if failed := steps["FAIL"]:
        text = f"{len(failed)} of {len(findings)} steps failed. Start with {failed[0]}."
    for verdict, title in (("warn", "Warnings"), ("skip", "Not checked")):
        if steps[verdict]:
            text += f" {title}: {', '.join(steps[verdict])}."
    return text
