"""The server's process that sends events to the webhook. It stops when the server stops."""

import sys
from functools import partial
from threading import Event

from service import settings
from service.webhook.delivery import start_sending


def main() -> None:
    """Sends events until standard input, whose other end the server has, is closed."""
    configuration = settings.load()
    report = partial(print, file=sys.stderr, flush=True)
    if start_sending(configuration, configuration.store, Event(), report):
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
