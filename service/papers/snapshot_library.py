"""Implements the `PaperLibrary` port over one snapshot and its static files."""

from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from evidence.errors import NotFound
from evidence.limits import BUDGETS, CONTRACT
from evidence import papers as answers
from evidence.model import Continuation
from evidence.work import request_deadline
from service.papers.names import facets
from service.papers import assets, papers, search, text_places
from service.papers.assets import Asset, AssetStore, LocalAssets
from service.papers.snapshot import Snapshot, Snapshots
from service.papers.papers import Row
from service.papers.search import Meaning
from service.papers.remote_assets import RemoteAssets
from service.papers.text_file import TextFile
from service.ports.papers import FacetRequest, KeywordQuery, PaperQuery, SourceRead, SummaryRead

REMOTE = ("http://", "https://")
DEFAULT_CHARS = {answers.SUMMARY: CONTRACT.summary_chars, answers.SOURCE: CONTRACT.source_chars}


class Papers(Snapshots):
    """The snapshot at a path in its current generation; `static` has its texts, if elsewhere.

    `meaning` opens what search by meaning needs.
    """

    def __init__(
        self, snapshot: Path, static: str | None = None, meaning: Meaning | None = None
    ) -> None:
        super().__init__(snapshot)
        self._static, self._meaning = static, meaning

    def texts(self) -> tuple[str, Iterator[tuple[str, str, str]]]:
        """(SHA-256 of the current snapshot, (id, title, summaries) of all its papers)."""
        snapshot = self.current()
        return snapshot.sha256, papers.texts(snapshot)

    def open(self) -> "SnapshotLibrary":
        """The library for one request."""
        return SnapshotLibrary(self, self._static, self._meaning)


class SnapshotLibrary:
    """The library of one request, at one generation. See `ports.PaperLibrary`."""

    def __init__(
        self, snapshots: Snapshots, static: str | None, meaning: Meaning | None = None
    ) -> None:
        self._snapshots, self._meaning = snapshots, meaning
        self._static = static
        self._remote = static is not None and static.startswith(REMOTE)
        self._current: Snapshot | None = None
        seconds = BUDGETS.upstream_seconds if self._remote else BUDGETS.store_seconds
        self._deadline = request_deadline(seconds)

    @property
    def fence_key(self) -> bytes:
        return self._snapshot().fence_key

    def search(self, request: PaperQuery) -> answers.PaperPage:
        return search.search(self._snapshot(request.cursor), request, self._meaning)

    def by_keyword(self, request: KeywordQuery) -> answers.PaperPage:
        return search.by_keyword(self._snapshot(request.cursor), request)

    def facets(self, request: FacetRequest) -> answers.PaperFacets:
        return facets(self._snapshot(), request.category, request.limit, request.offset)

    def paper(self, paper_id: str) -> answers.Paper:
        snapshot = self._snapshot()
        row = papers.identify(snapshot, paper_id)
        size = self._assets().size(_source(row)) if row.source_md_content_hash else None
        return papers.read(snapshot, row, size)

    def summary(self, read: SummaryRead) -> answers.PaperText:
        row = papers.identify(self._snapshot(), read.paper_id)
        return self._window(row, self._summary(row, read.template), read)

    def source(self, read: SourceRead) -> answers.PaperText:
        return self._window(*self._text(read), read)

    def find(self, read: SourceRead, query: str) -> answers.PaperFinds:
        row, asset = self._text(read)
        with self._open(asset) as file:
            share = self._deadline.share(BUDGETS.paper_find_share, most=BUDGETS.upstream_seconds)
            matches, searched_to = text_places.find(file, query, read.offset_chars, share)
            return answers.PaperFinds(
                **_reading_members(row, asset, file),
                query=query,
                offset=read.offset_chars,
                searched_to=searched_to,
                matches=matches,
                read_chars=read.max_chars or BUDGETS.paper_match_read_chars,
                read_before=BUDGETS.paper_match_read_before,
            )

    def outline(self, read: SourceRead) -> answers.PaperOutline:
        row, asset = self._text(read)
        with self._open(asset) as file:
            places = text_places.outline(file, read.offset_chars, BUDGETS.paper_headings)
            return answers.PaperOutline(
                **_reading_members(row, asset, file),
                offset=read.offset_chars,
                headings=places[0],
                next_offset=places[1],
                read_chars=read.max_chars or CONTRACT.source_chars,
            )

    def _snapshot(self, cursor: str | None = None) -> Snapshot:
        """The generation for this request; that of the cursor if it is about to be opened."""
        if self._current is None:
            self._current = self._snapshots.current(cursor.partition(".")[0] if cursor else None)
        return self._current

    def _assets(self) -> AssetStore:
        static, snapshot = self._static, self._snapshot()
        if static is not None and self._remote:
            return RemoteAssets(static, generation=snapshot.tag)
        return LocalAssets(Path(static) if static else snapshot.folder / "static")

    def _open(self, asset: Asset) -> TextFile:
        return self._assets().open(asset, self._deadline)

    def _window(self, row: Row, asset: Asset, read: SummaryRead | SourceRead) -> answers.PaperText:
        size = read.max_chars or DEFAULT_CHARS[read.operation]
        with self._open(asset) as file:
            return answers.PaperText(
                **_reading_members(row, asset, file),
                operation=read.operation,
                media_type=asset.media_type,
                text=file.window(read.offset_chars, size),
                start=read.offset_chars,
                version=file.version,
                template=asset.template,
                max_chars=read.max_chars,
                size=size,
            )

    def _text(self, read: SourceRead) -> tuple[Row, Asset]:
        """The source of a paper or its translation; raises `NotFound` with the available ones."""
        row = papers.identify(self._snapshot(), read.paper_id)
        return row, _source(row) if read.lang is None else self._translation(row, read.lang)

    def _translation(self, row: Row, lang: str) -> Asset:
        """A translation; ignores the case of its language."""
        there = papers.translations(self._snapshot(), row)
        for stored, content_hash in there.items():
            if stored.lower() == lang.lower():
                return assets.translation(row.paper_id, stored, content_hash)
        choices = [{"lang": code} for code in list(there)[: BUDGETS.paper_suggestions]]
        choices += [{}] if row.source_md_content_hash else []
        raise NotFound(
            f"This paper has no {lang!r} translation.",
            code="translation_not_available",
            hint=_has(there) or "It has no translations; read the source.",
            paper_id=row.paper_id,
            lang=lang,
            available_languages=_first(there),
            calls=_calls(answers.SOURCE, row, choices),
        )

    def _summary(self, row: Row, template: str | None) -> Asset:
        """A summary by its template; the default is the preferred one."""
        there = papers.templates(self._snapshot(), row)
        if template is not None and template not in there:
            tags = [tag for tag in there if tag != row.preferred_summary_template]
            choices = [{}, *({"template": tag} for tag in tags[: BUDGETS.paper_suggestions])]
            raise NotFound(
                f"This paper has no summary for the template {template!r}.",
                code="template_not_available",
                hint=_has(there) or "It has no summary templates; leave out `template`.",
                paper_id=row.paper_id,
                template=template,
                available_summary_templates=_first(there),
                preferred_summary_template=answers.line(row.preferred_summary_template),
                calls=_calls(answers.SUMMARY, row, choices),
            )
        path, content_hash = there.get(template or "", (None, None))
        return assets.summary(
            row.paper_id,
            template,
            preferred=row.preferred_summary_template,
            resource_path=path,
            content_hash=content_hash,
        )


def _reading_members(row: Row, asset: Asset, file: TextFile) -> dict[str, Any]:
    """The members of every `PaperReading`."""
    return {
        "paper_id": row.paper_id,
        "title": answers.line(row.title),
        "lang": asset.lang,
        "total": file.total,
    }


def _source(row: Row) -> Asset:
    if not row.source_md_content_hash:
        raise NotFound(
            "This paper has no source text in the library.",
            code="source_not_available",
            hint="Read its summary instead.",
            paper_id=row.paper_id,
            calls=_calls(answers.SUMMARY, row, [{}]),
        )
    return assets.source(row.paper_id, row.source_md_content_hash)


def _first(names: Collection[str]) -> list[str]:
    """The first names, as many as an error lists."""
    return list(islice(names, CONTRACT.candidates))


def _has(names: Collection[str]) -> str:
    """The available names, escaped on one line, or ""."""
    labels = [name if name.isprintable() else repr(name) for name in _first(names)]
    remaining = len(names) - len(labels)
    tail = f" and {remaining} more, which get_paper_metadata lists" if remaining else ""
    return f"Use one of these: {', '.join(labels)}{tail}." if labels else ""


def _calls(operation: str, row: Row, choices: list[dict[str, str]]) -> tuple[Continuation, ...]:
    """The calls for the available texts."""
    calls = ({"paper_id": row.paper_id, **choice} for choice in choices)
    return tuple(Continuation(operation, args, "retry") for args in calls)
