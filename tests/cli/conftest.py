"""A store for exports, built and served once."""

from collections.abc import Iterator

import pytest

from tests.helpers.archive import Archive, notes


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """A store nobody changes."""
    return Archive.make(tmp_path_factory.mktemp("archive"), notes())


@pytest.fixture(scope="session")
def url(archive: Archive) -> Iterator[str]:
    """A running Rung over it."""
    with archive.served() as url:
        yield url
