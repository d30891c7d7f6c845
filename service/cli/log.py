"""`rung log`: shows which grants read which streams."""

from datetime import date

import click
import orjson

from service.access.activity import KEPT_DAYS, Activity
from service.access.registry import Registry
from service.access.sidecar import Sidecar
from service.cli import output
from service.cli.source import store_option
from service.cli.store import existing, teaching
from service.place import Place


@click.command(
    "log",
    help="Show which grants read which streams, by day.\n\nEach line has the day (UTC), the grant, "
    "its label, the operation, the stream whose records were in the answers, and the number of "
    f"requests. Servers write these counts every few seconds and keep them for {KEPT_DAYS} days. "
    "They contain no text, query or record id. Direct reads of a store (--store) are not counted.",
)
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="The first day to show.")
@click.option("--grant", "name", help="Show only the grant with this id or label.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def log(since: date | None, name: str | None, as_json: bool, store: Place) -> None:
    with teaching():
        with existing(store) as writer:
            labels = {one.grant_id: one.label for one in Registry(writer).grants()}
        uses = Activity(Sidecar(store)).uses(f"{since:%Y-%m-%d}" if since else "")
    rows = [
        {**use._asdict(), "label": labels.get(use.grant_id)}
        for use in uses
        if name is None or name in (use.grant_id, labels.get(use.grant_id))
    ]
    if as_json:
        click.echo(orjson.dumps({"uses": rows}).decode())
        return
    for row in rows:
        label = f" {row['label']!r}" if row["label"] else ""
        stream = row["stream"] or "-"
        output.text(
            f"{row['day']} {row['grant_id']}{label} {row['operation']} {stream} {row['requests']}"
        )
    if not rows:
        output.say("No requests are recorded. Only a server records them: rung serve.")
