"""A terminal of 30 seconds as a moving picture: real commands over the demo, and their answers.

`python -m tests.journeys.recording` runs the commands and writes the picture.
"""

import re
import shlex
from collections.abc import Iterator
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from service.demo.fill import fill, token_for
from service.records.sqlite.writer import open_writer
from tests.helpers.server import ROOT
from tests.helpers.shell import Shell

PICTURE: Final = ROOT / "docs/images/recording.svg"
#: Commands of the README and the tutorial, each with the seconds for which it is shown.
SCENES: Final = (
    ("rung search what did I promise Noor --limit 1", 9),
    ("rung search quorum", 9),
    ("rung read gmail-home/messages:m_0042 body --query quorum --limit-chars 600", 12),
)
COLUMNS, ROWS, CHAR, LINE = 100, 22, 8.43, 19
TYPED_PER_SECOND: Final = 25
#: Each store has its own.
_CURSOR: Final = re.compile(r"--cursor\s+\S+")
STYLE: Final = """
text { font: 14px ui-monospace, Menlo, Consolas, monospace; fill: #d8dee9 }
text { white-space: pre }
.b { font-weight: bold } .d { fill: #8d99ae } .c { fill: #8fd3a0 } .m { fill: #f2cc60 }
g.scene { opacity: 0 }
@media (prefers-reduced-motion: reduce) {
  g, text { animation: none !important }
  #s0 { opacity: 1 }
}
"""


class Line(NamedTuple):
    """A line of the terminal as SVG, and when it appears in its scene."""

    svg: str
    at: float


def recorded() -> str:
    """The picture."""
    scenes, start = list[str](), 0
    total = sum(seconds for _, seconds in SCENES)
    for number, (command, answer) in enumerate(_answers()):
        seconds = SCENES[number][1]
        scenes.append(_scene(number, _lines(command, answer), start, seconds, total))
        start += seconds
    width, height = round(COLUMNS * CHAR) + 32, ROWS * LINE + 32
    about = "A terminal: " + "; ".join(command for command, _ in SCENES)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{escape(about)}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#1d2330"/>\n'
        f"{''.join(scenes)}</svg>\n"
    )


def _answers() -> Iterator[tuple[str, str]]:
    """Each command with what a terminal shows."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        with open_writer(folder / "rung.db") as writer:
            token = token_for(writer, fill(writer), folder / "token")
        shell = Shell({"RUNG_STORE": str(folder / "rung.db"), "RUNG_TOKEN": token})
        for command, _ in SCENES:
            yield command, shell.terminal(*shlex.split(command)[1:], columns=COLUMNS)


def _lines(command: str, answer: str) -> list[Line]:
    """The prompt, then the answer, as many lines as fit."""
    typed = len(command) / TYPED_PER_SECOND
    lines = [Line(f'<tspan class="c">$</tspan> {escape(command)}', 0)]
    console = Console(width=COLUMNS, color_system="truecolor")
    text = Text.from_ansi(_CURSOR.sub("--cursor …", answer.rstrip("\n")))
    for row in console.render_lines(text, pad=False)[: ROWS - 2]:
        lines.append(Line("".join(map(_span, row)), typed + 0.4))
    return lines


def _span(segment: Segment) -> str:
    style, text = segment.style, escape(segment.text)
    if style is None or not text.strip():
        return text
    colour = style.color.name if style.color else ""
    kinds = [
        *(["b"] if style.bold else []),
        *(["d"] if style.dim else []),
        *(["m"] if style.reverse or "yellow" in colour else []),
        *(["c"] if colour in ("green", "cyan", "blue") else []),
    ]
    return f'<tspan class="{" ".join(kinds)}">{text}</tspan>' if kinds else text


def _scene(number: int, lines: list[Line], start: int, seconds: int, total: int) -> str:
    """The lines as a group that is shown from `start` on, in a film of `total` seconds."""
    first, last = 100 * start / total, 100 * (start + seconds) / total
    rules = [_rule(f"s{number}", first, last)]
    shown = []
    for row, line in enumerate(lines):
        y = 16 + (row + 1) * LINE
        name = f"l{number}" if line.at else ""
        shown.append(
            f'<text class="{name}" x="16" y="{y}" xml:space="preserve">{line.svg}</text>\n'
        )
    rules.append(_rule(f"l{number}", first + 100 * max(line.at for line in lines) / total, last))
    return (
        f"<style>{''.join(rules)}#s{number} {{ animation: s{number} {total}s infinite }} "
        f".l{number} {{ animation: l{number} {total}s infinite }}</style>\n"
        f'<g class="scene" id="s{number}">\n{"".join(shown)}</g>\n'
    )


def _rule(name: str, first: float, last: float) -> str:
    """Keyframes that show something between two percentages of the film."""
    hidden = f"0%, {max(0, first - 0.01):.2f}% {{ opacity: 0 }} " if first else ""
    after = f"{last:.2f}%, 100% {{ opacity: 0 }} " if last < 100 else ""
    before_end = min(last - 0.01, 100) if last < 100 else 100
    shown = f"{first:.2f}%, {before_end:.2f}% {{ opacity: 1 }} "
    return f"@keyframes {name} {{ {hidden}{shown}{after}}}\n"


def main() -> None:
    PICTURE.write_text(recorded(), encoding="utf-8")


if __name__ == "__main__":
    main()
