"""Sends events to the configured webhook at the end of commands that change the store."""

from contextlib import closing
from threading import Event, Thread

from evidence.errors import EvidenceError
from service import settings
from service.cli.output import say
from service.place import Place
from service.webhook.delivery import keep_sending, open_delivery, send_waiting


def send_events(store: Place) -> None:
    """Sends the events that wait, if there is a webhook. After a failure they go on waiting."""
    try:
        if (delivery := open_delivery(settings.load(), store)) is None:
            return
        with closing(delivery):
            send_waiting(delivery, Event().wait)
        failure = delivery.failure
    except (EvidenceError, settings.SettingsError) as error:
        failure = str(error)
    if failure:
        say(f"webhook: {failure}")


def start_sending(store: Place, stop: Event) -> None:
    """Sends events in a thread until `stop`, if there is a webhook."""
    if (delivery := open_delivery(settings.load(), store)) is not None:
        Thread(target=keep_sending, args=(delivery, stop, say), daemon=True).start()
