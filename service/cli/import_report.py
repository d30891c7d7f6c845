"""Reports an import to its owner: proposed streams, outcomes of rows, and grants to create."""

import shlex
from collections.abc import Sequence
from typing import Any

import click

from evidence.limits import BUDGETS
from evidence.manifest import StreamManifest
from evidence.pointer import find
from service.access import coverage
from service.access.registry import Grant, Registry
from service.cli.output import counted, say
from service.cli.source import explicit_names
from service.cli.store import active_grants, existing
from service.importing.inference import Inferred
from service.importing.process.parsing import FileReport, by_kind
from service.importing.plan import Report
from service.place import Place
from service.records.writing import Writing

SAMPLE_CHARS = 40
FIELDS_MAX = 60


def preview(inferred: Inferred, rows: list[dict[str, Any]], *, full: bool) -> None:
    """Shows a proposed stream: each field with its type, role and a value, or a summary."""
    document = inferred.document
    fields = document["schema"]["properties"]
    roles = [(schema.get("x_pdpp_role"), name) for name, schema in fields.items()]
    assigned = [f"{role} {name}" for role, name in roles if role]
    key = ", ".join(document["primary_key"]) or "the content of a row"
    parts = [f"{counted(len(fields), 'field')}, id: {key}", ", ".join(assigned)]
    say(f"New stream {document['name']!r}: {'; '.join(filter(None, parts))}.")
    if full:
        _table(_paths(fields), set(document["query"]["search"]["lexical_fields"]), rows)
    else:
        say("To see its fields, add --dry-run. To edit them, add --write-manifest FILE.")
    for path, doubt in inferred.doubts.items():
        say(
            f"{path} stays text, because {doubt}. To declare its form, add x_rung_form to the "
            "field in the manifest (--write-manifest, then --manifest)."
        )


def _paths(properties: dict[str, Any], base: str = "") -> dict[str, dict[str, Any]]:
    paths = {}
    for name, schema in properties.items():
        path = f"{base}/{name}" if base else name
        paths[path] = schema
        paths |= _paths(schema.get("properties", {}), path if base else f"/{name}")
    return paths


def _table(fields: dict[str, Any], searched: set[str], rows: list[dict[str, Any]]) -> None:
    head = list(fields.items())[:FIELDS_MAX]
    width = max(len(path) for path, _ in head)
    for path, schema in head:
        kind = schema.get("x_rung_form") or schema.get("format") or schema["type"]
        values = (find(row, path) for row in rows)
        sample = next((str(cell) for cell in values if cell not in (None, "")), "")
        role = schema.get("x_pdpp_role", "searched" if path in searched else "")
        cut = sample[:SAMPLE_CHARS] + ("…" if len(sample) > SAMPLE_CHARS else "")
        say(f"  {path:<{width}}  {kind:<13}  {role:<13}  {cut!r}".rstrip())
    if len(fields) > len(head):
        say(f"  … and {len(fields) - len(head)} more.")


def of_file(report: FileReport) -> None:
    """Reports how a file was read, which text was replaced, and which rows were refused."""
    name = report.name
    for note in report.notes:
        say(f"{name}: {note}")
    replaced = {"NUL characters": report.nuls, "Undecodable bytes": report.undecodable}
    for what, count in replaced.items():
        if count:
            say(f"{name}: {what} replaced with U+FFFD: {count}.")
    for line, message in report.refusals:
        say(f"{name} line {line}: {message}" if line else message)
    if not report.rows and not report.textless:
        say(f"{name} has no rows, so nothing was imported from it.")


def of_skipped(skipped: Sequence[tuple[str, str, str]], *, detailed: bool) -> None:
    """Reports the files that are left out: counts by kind; `detailed` adds each reason."""
    for line in by_kind(skipped):
        say(f"Left out: {line}")
    if detailed:
        for name, _, reason in skipped:
            say(f"  {reason if name in reason else f'{name}: {reason}'}")
    elif len(skipped) > len(by_kind(skipped)):
        say("To list each file that was left out, with its reason, add --list-left-out.")


def of_import(report: Report, *, replaces: bool = False) -> None:
    """Reports an import, with notes for its owner. One that `replaces` a stream has no summary."""
    if error := report.unmerged:
        say(f"Warning: the rows were imported, but the indexes were not merged. {error.message}")
        say(f"{error.hint} The next import merges the indexes.")
    counts = report.counts
    if counts.refused > len(counts.refusals):
        say(f"… and {counted(counts.refused - len(counts.refusals), 'more refused row')}.")
    for name, fields in sorted(report.undeclared.items()):
        excerpt = ", ".join(sorted(fields)[: BUDGETS.names_shown])
        say(
            f"{name}: {counted(len(fields), 'field')} cannot be read without a manifest entry: "
            f"{excerpt}. To add entries, use --manifest."
        )
    for name, misfits in sorted(report.misfits.items()):
        for path, misfit in misfits.items():
            lines = ", ".join(f"line {line}: {value!r}" for line, value in misfit.examples)
            say(
                f"{name}: values of {path} that do not match its type: {misfit.count} ({lines}). "
                "They are stored, but filters and aggregates skip them."
            )
    for name in sorted(report.keyless):
        say(
            f"{name} has no id field, so the whole row is the id, and an edited row becomes a new "
            "record. To use a field as the id, import the file again into a new stream: --key "
            "FIELD --stream NAME."
        )
    for name, count in sorted(report.apart.items()):
        say(
            f"{name}: rows with the id of a different record in an earlier file: {count}. Rung "
            "adds ~ and a hash to their ids. If these rows are newer versions of the records, "
            "import the files one after the other."
        )
    words = ("new", "changed", "unchanged", "deleted", "refused")
    summary = ", ".join(f"{getattr(counts, word)} {word}" for word in words)
    repeated = f", {counts.repeated} repeated" if counts.repeated else ""
    if not replaces:  # or the stream is replaced, which has its own summary
        say(f"{report.connection_id}: {summary}{repeated}.")
    if counts.repeated:
        say(f"Rows replaced by a later row with the same id: {counts.repeated}.")
    if 0 < counts.refused < counts.rows:
        say(f"Refused rows, which are not in the store: {counts.refused} of {counts.rows}.")


def of_coverage(writer: Writing, report: Report) -> None:
    """Prints the active grants that do not cover all of a connection, each with a command."""
    of_connection(writer, report.connection_id, report.manifests)


def of_source(store: Place, connection_id: str) -> None:
    """The same in one line, after a round of a source of the connection."""
    with existing(store) as writer:
        manifests = writer.manifests(connection_id)
        of_connection(writer, connection_id, manifests, in_one_line=True)


def of_connection(
    writer: Writing,
    connection_id: str,
    manifests: Sequence[StreamManifest],
    *,
    in_one_line: bool = False,
) -> None:
    """The same for streams of a connection; in one line, all grants share a command."""
    grants = active_grants(writer, click.get_current_context().params["store"])
    gaps = coverage.gaps(Registry(writer), grants, connection_id, manifests)
    if in_one_line and len(gaps) > 1:
        titles = ", ".join(_title(gap.grant) for gap in gaps[: BUDGETS.names_shown])
        ellipsis = ", …" if len(gaps) > BUDGETS.names_shown else ""
        say(
            f"{len(gaps)} active grants do not cover all of {connection_id}: {titles}{ellipsis}. "
            f"{_command([connection_id], None)}"
        )
        return
    for gap in gaps[: BUDGETS.names_shown]:
        command = _command(gap.connections, gap.label, unlimited=gap.grant.is_limited)
        say(f"Grant {_title(gap.grant)} does not cover {gap.lacks}. {command}")
    if (rest := len(gaps) - BUDGETS.names_shown) > 0:
        more = "1 more grant does" if rest == 1 else f"{rest} more grants do"
        say(f"{more} not cover everything. To list grants: rung grant list")
    if not grants and manifests:
        say(f"No active grant covers {connection_id}. {_command([connection_id], None)}")


def _title(grant: Grant) -> str:
    return f"{grant.label!r} ({grant.grant_id})" if grant.label else grant.grant_id


def _command(connections: Sequence[str], label: str | None, *, unlimited: bool = False) -> str:
    """The command that creates a grant, after a short description; `unlimited` is said of it."""
    words = ["rung", "grant", "create"]
    words += [word for name in connections for word in ("--connection", name)]
    words += ["--label", label] if label else []
    context = click.get_current_context()
    if "store" in explicit_names(context):
        words += ["--store", str(context.params["store"])]
    without = ", without its limits on dates and records" if unlimited else ""
    return f"To create a grant that does{without}: {shlex.join(words)}"
