"""What the settings of sign-in cannot be combined with."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def faults(values: Mapping[str, Any]) -> Iterator[str]:
    """A line for each setting that sign-in cannot work with."""
    if values.get("sign_in") != "on":
        return
    public = urlsplit(values.get("public_url", "http://localhost"))
    if (
        public.path
        or public.query
        or (public.scheme != "https" and public.hostname not in _LOOPBACK)
    ):
        yield (
            "RUNG_SIGN_IN requires a RUNG_PUBLIC_URL that is https and has no path, for example "
            "https://rung.example.com."
        )
    if values.get("store_url"):
        yield "RUNG_SIGN_IN requires a store that keeps grants: unset RUNG_STORE_URL."
