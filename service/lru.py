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
        self._most, self._size, self._total = most, size, 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: K, value: V) -> None:
        with self._lock:
            if key in self._values:
                self._total -= self._size(key, self._values.pop(key))
            self._values[key] = value
            self._total += self._size(key, value)
            while self._total > self._most:
                self._total -= self._size(*self._values.popitem(last=False))

    def once(self, key: K, build: Callable[[], V]) -> V:
        """The value of `key`, built if missing. Two threads may both build it."""
        cached = self.get(key)
        if cached is None:
            cached = build()
            self.put(key, cached)
        return cached
