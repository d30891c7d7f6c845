"""Reports an import to its owner: the proposed streams, the outcome of the rows, and the active
grants that do not cover the connection, each with the command that creates one that does."""

import shlex
from collections.abc import Sequence
from typing import Any

import click

from evidence.limits import BUDGETS
from evidence.manifest import StreamManifest
from evidence.pointer import find
from service.access import coverage
from service.access.registry import Registry
from service.cli.output import say
from service.cli.source import explicit_names
from service.cli.store import active_grants
from service.importing.inference import Inferred
from service.importing.process.parsing import FileReport, by_kind
from service.importing.plan import Report
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
    summary = "; ".join(filter(None, [f"{len(fields)} fields, id: {key}", ", ".join(assigned)]))
    say(f"New stream {document['name']!r}: {summary}.")
    if full:
        _table(_paths(fields), set(document["query"]["search"]["lexical_fields"]), rows)
    else:
        say("--dry-run shows its fields; --write-manifest FILE writes them to a file to edit.")
    for path, doubt in inferred.doubts.items():
        say(
            f"{path} stays text: {doubt}. To declare its form, add x_rung_form to the field in the "
            "manifest (--write-manifest, then --manifest)."
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
    replaced = {"NUL characters": report.nuls, "undecodable bytes": report.undecodable}
    for what, count in replaced.items():
        if count:
            say(f"{name}: {count} {what} are replaced by U+FFFD.")
    for line, message in report.refusals:
        say(f"{name} line {line}: {message}" if line else message)
    if not report.rows and not report.textless:
        say(f"{name} has no rows, so nothing of it was imported.")


def of_skipped(skipped: Sequence[tuple[str, str, str]], *, detailed: bool) -> None:
    """Reports the files that are left out: counts by kind; `detailed` adds each reason."""
    for line in by_kind(skipped):
        say(f"Left out: {line}")
    if detailed:
        for name, _, reason in skipped:
            say(f"  {reason if name in reason else f'{name}: {reason}'}")
    elif len(skipped) > len(by_kind(skipped)):
        say("--list-left-out lists each file that is left out, with its reason.")


def of_import(report: Report, *, replaces: bool = False) -> None:
    """Reports an import, with notes for its owner. One that `replaces` a stream has no summary."""
    if error := report.unmerged:
        say(f"Warning: every row is imported, but the indexes are not merged. {error.message}")
        say(f"{error.hint} The next import merges them.")
    counts = report.counts
    if counts.refused > len(counts.refusals):
        say(f"… and {counts.refused - len(counts.refusals)} more refused rows.")
    for name, fields in sorted(report.undeclared.items()):
        excerpt = ", ".join(sorted(fields)[: BUDGETS.names_shown])
        say(
            f"{name}: {len(fields)} fields are not in the manifest and cannot be read: {excerpt}. "
            "Declare them with --manifest."
        )
    for name, misfits in sorted(report.misfits.items()):
        for path, misfit in misfits.items():
            lines = ", ".join(f"line {line}: {value!r}" for line, value in misfit.examples)
            say(
                f"{name}: {misfit.count} values of {path} do not have its type. They are stored, "
                f"but filters and aggregates skip them ({lines})."
            )
    for name in sorted(report.keyless):
        say(
            f"{name}: no id field, so the id of a row is its content: an edited row is a new "
            "record. To use a field as the id, import into a new stream: --key FIELD --stream NAME."
        )
    for name, count in sorted(report.apart.items()):
        say(
            f"{name}: {count} rows have the id of another record in an earlier file. They are kept "
            "apart, with ids that end in ~ and a hash. If they are newer versions, import the "
            "files one after the other."
        )
    words = ("new", "changed", "unchanged", "deleted", "refused")
    summary = ", ".join(f"{getattr(counts, word)} {word}" for word in words)
    repeated = f", {counts.repeated} repeated" if counts.repeated else ""
    if not replaces:  # or the stream is replaced, which has its own summary
        say(f"{report.connection_id}: {summary}{repeated}.")
    if counts.repeated:
        say(f"{counts.repeated} rows had the id of a later row, which replaced them.")
    if 0 < counts.refused < counts.rows:
        say(f"{counts.refused} of {counts.rows} rows were refused and are not in the store.")


def of_coverage(writer: Writing, report: Report) -> None:
    """Prints the active grants that do not cover all of a connection, each with a command."""
    of_connection(writer, report.connection_id, report.manifests)


def of_connection(writer: Writing, connection_id: str, manifests: Sequence[StreamManifest]) -> None:
    """The same for the streams of a connection."""
    grants = active_grants(writer, click.get_current_context().params["store"])
    gaps = coverage.gaps(Registry(writer), grants, connection_id, manifests)
    for gap in gaps[: BUDGETS.names_shown]:
        label, grant_id = gap.grant.label, gap.grant.grant_id
        title = f"{label!r} ({grant_id})" if label else grant_id
        say(f"Grant {title} does not cover {gap.lacks}. {_command(gap.connections, gap.label)}")
    if (rest := len(gaps) - BUDGETS.names_shown) > 0:
        uncovered = "1 more grant does" if rest == 1 else f"{rest} more grants do"
        say(f"… and {uncovered} not cover it either. List them: rung grant list.")
    if not grants and manifests:
        say(f"No active grant covers {connection_id}. {_command([connection_id], None)}")


def _command(connections: Sequence[str], label: str | None) -> str:
    """The command that creates a grant, after a short description."""
    words = ["rung", "grant", "create"]
    words += [word for name in connections for word in ("--connection", name)]
    words += ["--label", label] if label else []
    context = click.get_current_context()
    if "store" in explicit_names(context):
        words += ["--store", str(context.params["store"])]
    return f"For a token that does: {shlex.join(words)}"
