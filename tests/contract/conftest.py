"""Each test of the contract runs once for every subject."""

from collections.abc import Iterator

import pytest

from tests.contract.subjects import SUBJECTS, Subject
from tests.helpers.caller import Local
from tests.helpers.worlds import House


@pytest.fixture(scope="module", params=SUBJECTS)
def subject(request: pytest.FixtureRequest, small_house: House, small: Local) -> Iterator[Subject]:
    """One resource server."""
    with SUBJECTS[request.param](small_house, small) as found:
        yield found
