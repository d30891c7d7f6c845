"""The text of a paper, as an export reads it."""

from dataclasses import dataclass

from evidence.limits import CONTRACT
from evidence.papers import PaperText
from service.cli.export.texts import Window
from service.papers.snapshot_library import Papers


@dataclass(frozen=True, slots=True)
class PaperSource:
    """The Markdown of a paper, or a translation of it."""

    papers: Papers
    paper_id: str
    lang: str | None

    def window(self, offset: int, limit: int | None = None) -> Window:
        window = self._read(offset, limit or CONTRACT.source_chars_max)
        return Window(window.text, window.start, window.total)

    def version(self) -> str:
        return self._read(0, 1).version

    def _read(self, offset: int, size: int) -> PaperText:
        session = self.papers.open()
        return session.source(self.paper_id, lang=self.lang, offset=offset, max_chars=size)
