"""The tables of the sidecar, for data that changes often; changes must not wait for an import.

Both engines run these scripts, so they use only SQL that SQLite and PostgreSQL share. To change the
layout, append a script.
"""

from typing import Final

#: One script for each version of the layout.
SCRIPTS: Final[tuple[str, ...]] = (
    """
    CREATE TABLE access_clock (id INTEGER PRIMARY KEY, seen TEXT NOT NULL);
    CREATE TABLE access_use (
      day TEXT NOT NULL, grant_id TEXT NOT NULL, operation TEXT NOT NULL, stream TEXT NOT NULL,
      count BIGINT NOT NULL, PRIMARY KEY (day, grant_id, operation, stream)
    );
    """,
    """
    CREATE TABLE access_entry (
      kind TEXT NOT NULL, key TEXT NOT NULL, owner TEXT NOT NULL, body TEXT NOT NULL,
      uses BIGINT NOT NULL, used_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
      PRIMARY KEY (kind, key)
    );
    CREATE INDEX access_entry_owner ON access_entry (kind, owner);
    CREATE INDEX access_entry_expires ON access_entry (expires_at);
    """,
)
#: The tables that the role of web processes may write to.
TABLES: Final = ("access_clock", "access_use", "access_entry")
