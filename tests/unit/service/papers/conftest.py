"""Snapshots of two releases, fresh for every test."""

from pathlib import Path

import pytest

from tests.helpers.snapshots import copied, place, retitled


@pytest.fixture(params=("papers", "papers-legacy"))
def snapshots(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The file of a snapshot with its `static/`: one of today, and one from before DOIs."""
    return copied(request.param, tmp_path)


@pytest.fixture
def snapshot_file(tmp_path: Path) -> Path:
    """The file of today's snapshot, alone in its folder."""
    return place(tmp_path / "served" / "snapshot.db")


@pytest.fixture
def other_file(tmp_path: Path) -> Path:
    """A file of the same papers with another title, to take the place of the first."""
    return retitled(place(tmp_path / "other" / "snapshot.db"), "Another title")
