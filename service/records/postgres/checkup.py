"""What `rung doctor` asks of a database."""

from contextlib import closing

from service.records.postgres.connections import connect, explained
from service.records.postgres.ddl import WEB_GRANT

#: What makes a role that sees no more than each request names.
SECOND_ROLE = f"CREATE ROLE rung_web LOGIN; {WEB_GRANT.format('rung_web')};"

#: Whether a role can read every record, whatever a request names.
OF_OWNER = "SELECT has_table_privilege('term', 'SELECT')"


def sees_everything(url: str) -> bool:
    """Whether the role of a URL can read every record, whatever a request names."""
    with explained(), closing(connect(url)) as db:
        row = db.execute(OF_OWNER).fetchone()
    return row is None or bool(row[0])
