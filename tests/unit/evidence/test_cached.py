"""A property that is computed once makes no thread wait for another."""

from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from threading import Barrier

from evidence.cached import cached_property


class Search:
    """Its page is there when two of them are computed at once."""

    together = Barrier(2, timeout=20)

    @cached_property
    def page(self) -> int:
        """The page."""
        return self.together.wait()


def test_two_threads_compute_the_properties_of_two_objects_at_once() -> None:
    searches = Search(), Search()
    with ThreadPoolExecutor(2) as threads:
        pages = list(threads.map(attrgetter("page"), searches))
    assert sorted(pages) == [0, 1]
    assert [search.page for search in searches] == pages


def test_the_class_shows_the_documentation() -> None:
    assert Search.page.__doc__ == "The page."
