"""Files made to stop, swell or mislead an import, by kind: `KINDS`."""

from tests.formats.hostile import archives, calendars_and_cards, chats, databases, mail, names
from tests.formats.hostile import notes, outlines, tables
from tests.formats.hostile.files import KINDS, Hostile

__all__ = ("KINDS", "Hostile")
_ = (archives, calendars_and_cards, chats, databases, mail, names, notes, outlines, tables)
