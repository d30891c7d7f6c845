"""Stores as earlier versions left them."""

from service.records.sqlite.writer import Writer

#: What each layout added, in the order in which it can be dropped.
ADDED = {
    2: ("TABLE member", "TABLE package"),
    3: ("TABLE fts_recent", "VIEW recent_text", "TABLE recent"),
}


def take_back(writer: Writer, layout: int) -> None:
    """Makes a store one of an earlier layout."""
    for added in (names for since, names in ADDED.items() if since > layout):
        for name in added:
            writer.db.execute(f"DROP {name}")
    writer.db.execute("DELETE FROM meta WHERE key = 'recent_floor'")
    writer.db.execute(f"PRAGMA user_version = {layout}")
