"""The evidence benchmark: provable tasks, an agent that solves them, and results with a commit."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from quality import record
from quality.evidence import proof, tasks
from quality.evidence.__main__ import fill, main, measure_plain, measure_rung
from quality.evidence.measure import Result, write
from quality.evidence.tasks import NONE, Ask
from tests.architecture.sources import text
from tests.helpers import commits
from tests.helpers.server import serving

#: A seed for which small corpora have one answer for each task.
SEED, SCALE = 4, 0.2


def test_a_seed_always_gives_the_same_120_tasks_over_the_same_records() -> None:
    records, planned = tasks.make(SEED, SCALE)
    again, same = tasks.make(SEED, SCALE)
    assert planned == same and [one.row for one in records] == [one.row for one in again]
    assert Counter(task.kind for task in planned) == {
        **{"needle": 24, "long": 16, "apart": 16, "count": 16},
        **{"end": 12, "twins": 12, "odd-id": 12, "absent": 12},
    }
    texts = "\n".join(record.text for record in records)
    coded = [task for task in planned if task.ask.goal in ("sentence", "beside", "closing")]
    assert all(texts.count(task.answer) == 1 for task in coded if task.answer != NONE)


@pytest.mark.parametrize(
    "goal, words, text, proven",
    [
        ("sentence", ("elm", "ash"), "The elm is old. The ash has KX-0412-BR.", []),
        ("sentence", ("elm", "ash"), "The elm and the ash have KX-0412-BR.", ["KX-0412-BR"]),
        ("sentence", ("elm", "ash"), "The elms and the ash have KX-0412-BR.", []),
        ("beside", ("elm", "ash"), "The elm is old. The ash has KX-0412-BR.", ["KX-0412-BR"]),
        ("beside", ("elm", "ash"), f"The elm.{' a' * 60} The ash has KX-0412-BR.", []),
    ],
)
def test_an_answer_is_what_a_text_proves(
    goal: str, words: tuple[str, ...], text: str, proven: list[str]
) -> None:
    assert list(proof.answers(Ask(goal, words), text)) == proven


def measure_over_http(folder: Path, only: tuple[str, ...]) -> Result:
    """The command that measures a server at an address, and its result."""
    (folder / "token").write_text(fill(folder))
    with serving("service.app:create_app()", {"RUNG_STORE": str(folder / "store.db")}) as url:
        words = ["run", str(folder), "--url", f"{url}/mcp", "--token-file", str(folder / "token")]
        words += ["--reader", "quality.evidence.readers:RungReader"]
        words += [word for prefix in only for word in ("--only", prefix)]
        done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return Result(**json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("measured", [measure_rung, measure_plain, measure_over_http])
def test_the_agent_solves_tasks_of_each_kind_by_the_pages_of_a_server(
    measured: Callable[[Path, tuple[str, ...]], Result], tmp_path: Path
) -> None:
    if measured is measure_plain:
        pytest.importorskip("mcp", reason="the plain server needs the extra quality")
    records, planned = tasks.make(SEED, SCALE)
    write(tmp_path, records, planned)
    kinds = sorted({task.kind for task in planned})
    result = measured(tmp_path, tuple(f"{kind}-02" for kind in kinds))
    assert result.right == result.tasks == len(kinds) and result.wrong == []
    assert result.calls >= result.tasks and result.bytes > result.largest > 1_000
    assert result.handles > result.dead == 0
    assert result.shown == result.hits > 0


@pytest.mark.parametrize(
    "words, message",
    [
        (["corpus", "{}", "--seed", "0", "--scale", "0.2"], "Use another seed."),
        (["run", "{}", "--url", "http://127.0.0.1:9/mcp"], "The server cannot be measured."),
        (["run", "{}", "--stdio", "false"], "The server cannot be measured."),
        (["run", "{}"], "Give either --url or --stdio."),
    ],
)
def test_a_command_that_cannot_run_says_why(words: list[str], message: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [word.format(tmp_path) for word in words])
    assert done.exit_code in (1, 2) and message in done.output, done.exception


def test_results_are_out_of_date_once_the_product_has_changed(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    for name in ("evidence/a.py", "docs/a.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "Begin")
    commit = git("rev-parse", "HEAD")
    (tmp_path / "docs/a.md").write_text("2\n")
    assert commits.state(commit, tmp_path) == "current"
    assert "no commit" in commits.state("", tmp_path)
    assert "no commit" in commits.state(f"{commit}{commits.DIRTY}", tmp_path)
    (tmp_path / "evidence/a.py").write_text("2\n")
    assert "1 product files" in commits.state(commit, tmp_path)


def test_the_stamp_of_a_page_is_read_from_it() -> None:
    page = f"# Results\n\n{commits.stamp('2026-01-02', '0123abcd')} On a machine.\n"
    assert commits.read_stamp(page) == ("2026-01-02", "0123abcd")
    assert commits.read_stamp("# Results\n\n2026-01-02, a machine.\n") == ("2026-01-02", "")
    assert commits.read_stamp("# Results\n") == ("", "")


def test_the_record_has_a_row_with_a_command_for_each_measurement_and_names_what_is_behind() -> (
    None
):
    page = record.page()
    for name, command in (
        ("search-quality.md", "COLLECTIONS=FOLDER make quality"),
        ("benchmarks.md", "make bench"),
        ("figures.md", "make figures"),
    ):
        row = next(line for line in page.splitlines() if f"]({name}) |" in line)
        assert row.endswith(f" | `{command}` |") and ("current" in row or "out of date" in row)
    missed = text(Path("docs/benchmarks.md")).count(" | missed |")
    behind = page.partition("## Missed goals")[2].partition("[Benchmarks]")[2].partition("\n")[0]
    assert behind.count("`") == 2 * missed
