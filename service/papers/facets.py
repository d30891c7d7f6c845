"""The most frequent values of a category, counted by their papers."""

from evidence.errors import InvalidRequest
from evidence.limits import CONTRACT
from evidence.papers import PaperFacets
from service.papers import names
from service.papers.snapshot import Snapshot

# A longer value could not be searched for.
LONGEST = CONTRACT.query_chars // 2
# Nor could a value of only these: blanks, quotes, dots and invisible characters.
BLANK = ' \t\n\v\f\r\u00a0".' + "".join(map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F))))

#: category -> SQL of (value, papers)
_COUNTED = {
    **{name: f"SELECT value, paper_count AS papers FROM {name}" for name in names.LISTED},
    "year": "SELECT year AS value, count(*) AS papers FROM paper GROUP BY year",
    "month": "SELECT month AS value, count(*) AS papers FROM paper GROUP BY month",
    "template": "SELECT template_tag AS value, count(*) AS papers FROM paper_summary "
    "JOIN paper USING (paper_id) GROUP BY template_tag",
    "language": "SELECT lang AS value, count(*) AS papers FROM paper_translation "
    "JOIN paper USING (paper_id) WHERE md_content_hash <> '' GROUP BY lang",
}
CATEGORIES = tuple(_COUNTED)


def facets(snapshot: Snapshot, category: str, *, limit: int, offset: int) -> PaperFacets:
    """A page of values, most papers first, then by value, without "unknown".

    Raises `InvalidRequest` for an unknown category.
    """
    if category not in _COUNTED:
        raise InvalidRequest(
            f"Unknown category. Use one of {', '.join(CATEGORIES)}.", param="category"
        )
    counted = (
        f"FROM ({_COUNTED[category]}) WHERE papers > 0 "
        f"AND trim(value, ?) NOT IN ('', 'unknown') AND length(value) <= {LONGEST}"
    )
    with snapshot.connection() as db:
        (total,) = db.execute(f"SELECT count(*) {counted}", (BLANK,)).fetchone()
        values = db.execute(
            f"SELECT value, papers {counted} ORDER BY papers DESC, value LIMIT ? OFFSET ?",
            (BLANK, limit, min(offset, total)),  # SQLite has no larger numbers than 64 bits
        ).fetchall()
    return PaperFacets(
        category=category,
        values=values,
        offset=offset,
        total=total,
        args={"category": category, "limit": limit},
    )
