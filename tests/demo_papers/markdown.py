"""Markdown for a full-text table: one line of words, CJK characters apart."""

import re

_FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_TABLE_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_BLOCK_MARK = re.compile(r"^\s*(?:#{1,6}|>|[-*+]|\d+\.)\s+", re.MULTILINE)
_LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"(\*{1,3})(?=\S)(.+?)(?<=\S)\1")
_TAG = re.compile(r"<[^<>]*>")

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_BETWEEN_CJK = re.compile(f"(?<=[{_CJK}])(?=[{_CJK}])")

PREVIEW_CHARS = 320


def plain(markdown: str) -> str:
    """The words of a Markdown text; code blocks and tables are left out, formulae stay."""
    text = _TABLE_ROW.sub("", _FENCED.sub("", markdown))
    text = _LINK.sub(r"\1", _BLOCK_MARK.sub("", text))
    text = _TAG.sub(" ", _EMPHASIS.sub(r"\2", text)).replace("`", "")
    return " ".join(text.split())


def spaced(text: str) -> str:
    """The text with a space between neighbours that are CJK characters."""
    return _BETWEEN_CJK.sub(" ", text)


def preview(markdown: str) -> str:
    """The first words of a Markdown text."""
    text = plain(markdown)
    return text if len(text) <= PREVIEW_CHARS else f"{text[:PREVIEW_CHARS - 1].rstrip()}…"
