"""Rate limits for each token, and for each address that sends no token; work budgets.

Each worker counts separately unless a storage is shared; if that storage is unavailable, nobody is
refused. A private address that no trusted proxy reports may be shared by many clients. Its requests
are not counted; the work for all such addresses together is.

A budget of work is CPU seconds a minute. It belongs to a grant, so that a new token brings no new
one, to the token if it has no grant here, or else to the address. A request is charged when it
ends. The minute rolls on: of the fixed minute before the current one, the part counts that is
less than a minute ago.
"""

import ipaddress
import logging
import re
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar, cast

from limits import RateLimitItem, parse
from limits.errors import ConfigurationError, StorageError
from limits.storage import Storage, storage_from_string
from limits.strategies import FixedWindowRateLimiter

from evidence import request_log, work
from evidence.request_log import Allowance, RequestLog
from evidence.errors import RateLimited, Unauthenticated
from service.extras import install_command
from service.keys import hashed
from service.networks import is_public
from service.settings import Settings, SettingsError

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: The owner of an IPv6 network has this many addresses.
IPV6_PREFIX: Final = 64
#: Some proxies add the port to the address.
_WITH_PORT: Final = re.compile(r"\[([^\]]+)\](?::\d+)?|([0-9.]+):\d+")
_STORAGE_SECONDS: Final = 0.25
#: Expired counts are dropped this often.
_FORGET_SECONDS: Final = 10
_MINUTE: Final = 60
_A: Final = {"second": "a second", "minute": "a minute", "hour": "an hour", "day": "a day"}


class Rates:
    """The limits of a deployment. Create it before workers fork; each worker counts separately.

    `clock` is that of the budgets of work: seconds since 1970.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._token = _item(settings.rate_limit_token)
        self._address = _item(settings.rate_limit_address)
        self._failures = _item(settings.rate_limit_failures)
        self._behind_proxy = settings.trusted_proxy_hops > 0
        self._storage = _storage(settings.rate_limit_storage)
        self._limiter = FixedWindowRateLimiter(self._storage)
        self._work, self._clock = settings.work_seconds, clock

    def opened(self, token: str | None, open: Callable[[], T]) -> T:
        """The result of `open`, if the limit allows it; raises `RateLimited` otherwise.

        Refused tokens count against their address, which is itself refused after too many.
        """
        entry = request_log.current()
        address = client(entry.address, private=self._behind_proxy)
        try:
            if address and self._failures and not self._limiter.test(self._failures, address):
                raise self._refusal(self._failures, address, "refused tokens from this address")
            if token and self._token:
                self._take(
                    entry, self._token, f"token:{hashed(token).hex()}", "requests with this token"
                )
            if not token and address and self._address:
                self._take(entry, self._address, "address:" + address, "requests from this address")
        except StorageError as error:
            logger.warning("rate limits are not enforced: %s", type(error).__name__)
        if not token:
            self.check_work(entry)
        try:
            opened = open()
        except Unauthenticated:
            if address and self._failures:
                self._count(self._failures, address)
            raise
        if token:
            payer = f"grant:{entry.grant}" if entry.grant else f"token:{hashed(token).hex()}"
            entry.payer = entry.payer or payer
            self.check_work(entry)
        return opened

    def check_work(self, entry: RequestLog) -> None:
        """Raises `RateLimited` if the budget of the payer of a request is used up."""
        if self._work is None:
            return
        payer = self._payer(entry)
        try:
            used, wait = self._used(payer)
        except StorageError as error:
            logger.warning("CPU limits are not enforced: %s", type(error).__name__)
            return
        used += work.spent()
        if used < self._work:
            return
        whose = {"grant": "under this grant", "token": "with this token"}.get(
            payer.partition(":")[0]
        )
        raise RateLimited(
            f"Requests {whose or 'from this address'} used {used:.1f} CPU seconds within a "
            f"minute; the limit is {self._work}.",
            code="rate_limited",
            hint=f"Retry in {wait} s. Narrow the requests that take a long time.",
            retry_after=wait,
            spent_seconds=round(used, 1),
            limit_seconds=self._work,
        )

    def charge(self, entry: RequestLog, seconds: float) -> None:
        """Counts CPU seconds for the payer of a request."""
        if self._work is None:
            return
        key = _window(self._payer(entry), int(self._clock()) // _MINUTE)
        try:
            self._storage.incr(key, 2 * _MINUTE, round(seconds * 1_000))
        except StorageError as error:
            logger.warning("CPU limits are not enforced: %s", type(error).__name__)

    def _payer(self, entry: RequestLog) -> str:
        if entry.payer:
            return entry.payer
        return f"address:{client(entry.address, private=self._behind_proxy) or ''}"

    def _used(self, payer: str) -> tuple[float, int]:
        """(CPU seconds within the last minute, seconds until they are within the budget)."""
        assert self._work is not None, "there is a budget"
        minute, second = divmod(self._clock(), _MINUTE)
        before, current = (
            self._storage.get(_window(payer, int(minute) - ago)) / 1_000 for ago in (1, 0)
        )
        used = before * (1 - second / _MINUTE) + current
        if current < self._work:
            wait = _MINUTE * (1 - (self._work - current) / (before or 1)) - second
        else:
            wait = _MINUTE * (2 - self._work / current) - second
        return used, max(1, round(wait + 0.5))

    def _count(self, item: RateLimitItem, key: str) -> None:
        try:
            self._limiter.hit(item, key)
        except StorageError as error:
            logger.warning("rate limits are not enforced: %s", type(error).__name__)

    def _take(self, entry: RequestLog, item: RateLimitItem, key: str, what: str) -> None:
        """Counts one request, and records how many the stricter limit still allows."""
        within = self._limiter.hit(item, key)
        reset, remaining = self._limiter.get_window_stats(item, key)
        allowance = Allowance(item.amount, max(0, remaining), _seconds_until(reset))
        if entry.allowance is None or allowance.remaining < entry.allowance.remaining:
            entry.allowance = allowance
        if not within:
            raise self._refusal(item, key, what)

    def _refusal(self, item: RateLimitItem, key: str, what: str) -> RateLimited:
        reset, _ = self._limiter.get_window_stats(item, key)
        wait = _seconds_until(reset)
        return RateLimited(
            f"Too many {what}: the limit is {item.amount} {_A[item.GRANULARITY.name]}.",
            hint=f"Retry in {wait} s.",
            retry_after=wait,
        )


@lru_cache(maxsize=4_096)
def client(address: str, *, private: bool) -> str | None:
    """The client key of an address; None if several clients may share it."""
    parts = _WITH_PORT.fullmatch(address)
    try:
        ip = ipaddress.ip_address(parts[1] or parts[2] if parts else address)
    except ValueError:
        return None
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped  # their common network is all of IPv4
    if not (private or is_public(str(ip))):
        return None
    if ip.version == 6:
        return str(ipaddress.ip_network((ip, IPV6_PREFIX), strict=False))
    return str(ip)


def _window(payer: str, minute: int) -> str:
    """The key of the work of a payer in a minute since 1970."""
    return f"rung-work/{payer}/{minute}"


def _item(rate: str | None) -> RateLimitItem | None:
    return parse(rate) if rate else None


class _Counts(Storage):
    """Counts of this process. `limits.MemoryStorage` starts a thread for nearly every request."""

    STORAGE_SCHEME = None
    base_exceptions = ()

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        #: {key: (count, when it ends)}; a clock that is set back must not stretch a window.
        self._counts: dict[str, tuple[int, float]] = {}
        self._looked_through = time.monotonic()

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        now = time.monotonic()
        with self._lock:
            if now - self._looked_through >= _FORGET_SECONDS:
                self._counts = {k: entry for k, entry in self._counts.items() if entry[1] > now}
                self._looked_through = now
            count, end = self._counts.get(key, (0, 0.0))
            if end <= now:
                count, end = 0, now + expiry
            self._counts[key] = count + amount, end
            return count + amount

    def get(self, key: str) -> int:
        count, end = self._counts.get(key, (0, 0.0))
        return count if end > time.monotonic() else 0

    def get_expiry(self, key: str) -> float:
        now = time.monotonic()
        return time.time() + self._counts.get(key, (0, now))[1] - now

    def check(self) -> bool:
        return True

    def reset(self) -> int:
        number, self._counts = len(self._counts), {}
        return number

    def clear(self, key: str) -> None:
        self._counts.pop(key, None)


def _storage(address: str | None) -> Storage:
    if address is None:
        return _Counts()
    options = {"socket_timeout": _STORAGE_SECONDS, "socket_connect_timeout": _STORAGE_SECONDS}
    try:
        return cast(Storage, storage_from_string(address, wrap_exceptions=True, **options))
    except ConfigurationError:
        raise SettingsError(
            f"RUNG_RATE_LIMIT_STORAGE needs another package. Run {install_command('redis')}, or "
            "leave the setting unset."
        ) from None


def _seconds_until(moment: float) -> int:
    return max(1, round(moment - time.time() + 0.5))
