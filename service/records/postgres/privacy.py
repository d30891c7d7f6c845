"""Finds what a service's database role can read, regardless of Rung's own grant checks."""

from contextlib import closing

from service.records.postgres.connections import connect, explained
from service.records.postgres.ddl import WEB_GRANT

#: The statements that create a role that sees only what each request names.
SECOND_ROLE = f"CREATE ROLE rung_web LOGIN; {WEB_GRANT.format('rung_web')};"

#: Whether a role can read the words of every record, regardless of the request.
OF_OWNER = "SELECT has_table_privilege('term', 'SELECT')"
_WALLS = f"SELECT row_security_active('record'), NOT ({OF_OWNER})"


def walls(url: str) -> tuple[bool, bool]:
    """(whether row security applies to the role of a URL, whether the views restrict it)."""
    with explained(), closing(connect(url)) as db:
        bound, walled = db.execute(_WALLS).fetchone() or (False, False)
    return bound, walled
