"""A small cache of recent results."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """The most recently used values.

    Safe to share between threads. Keeps `most` values or, if `size` returns the size of each,
    values with `most` in total.
    """

    def __init__(self, most: int, size: Callable[[K, V], int] = lambda key, value: 1) -> None:
        self._most, self._size, self._held = most, size, 0
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: K, value: V) -> None:
        with self._lock:
            if key in self._kept:
                self._held -= self._size(key, self._kept.pop(key))
            self._kept[key] = value
            self._held += self._size(key, value)
            while self._held > self._most:
                self._held -= self._size(*self._kept.popitem(last=False))

    def once(self, key: K, build: Callable[[], V]) -> V:
        """The value of `key`, built if missing. Two threads may both build it."""
        found = self.get(key)
        if found is None:
            found = build()
            self.put(key, found)
        return found
