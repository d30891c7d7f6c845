"""Checks the settings that sign-in depends on."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def faults(values: Mapping[str, Any]) -> Iterator[str]:
    """Yields an error message for each setting that prevents sign-in."""
    if values.get("sign_in") != "on":
        return
    public = urlsplit(values.get("public_url", "http://localhost"))
    if (
        public.path
        or public.query
        or (public.scheme != "https" and public.hostname not in _LOOPBACK)
    ):
        yield (
            "RUNG_SIGN_IN requires an https RUNG_PUBLIC_URL without a path, for example "
            "https://rung.example.com."
        )
    if values.get("client_documents") == "loopback" and public.hostname not in _LOOPBACK:
        yield "RUNG_CLIENT_DOCUMENTS=loopback requires a server on loopback. Unset one of the two."
    if values.get("store_url"):
        yield "RUNG_SIGN_IN requires a store that grants can be added to. Unset RUNG_STORE_URL."
