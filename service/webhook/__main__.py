"""The server's process that sends events to the webhook. It stops when the server stops."""

import sys
from functools import partial
from threading import Event, Thread

from service import settings
from service.webhook.delivery import keep_sending, open_delivery


def main() -> None:
    """Sends events until standard input, whose other end the server has, is closed."""
    configuration = settings.load()
    delivery = open_delivery(configuration, configuration.store)
    if delivery is not None:
        report = partial(print, file=sys.stderr, flush=True)
        Thread(target=keep_sending, args=(delivery, Event(), report), daemon=True).start()
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
