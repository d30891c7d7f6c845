"""Pages of the records closest in meaning to a question, whatever words the records contain."""

from evidence.hits import SearchPage
from evidence.limits import BUDGETS
from evidence.work import Deadline
from service.keys import Sealer, identity
from service.meaning.encoder import Encoder
from service.ports import SearchQuery
from service.records.engine import Snapshot
from service.records.search import related
from service.records.search.blocks import DIGITS
from service.records.search.hits import hits_of
from service.records.search.ordering import RelatedRecord
from service.records.search.pages import Search
from service.records.view import View


def search(
    snapshot: Snapshot,
    view: View,
    request: SearchQuery,
    sealer: Sealer,
    encoder: Encoder | None = None,
) -> SearchPage:
    """A page of hits, nearest first; windows prove the words of the question that occur.

    All pages together have the records of the nearest codes. If meaning is not available, it is a
    page by words with a warning.
    """
    question = Search(snapshot, view, request, encoder)
    if (nearness := question.meaning.nearness) is None:
        return question.page(sealer)
    covered = question.searched.covered
    bound, current = identity(request, "nearest", question.view.grant.grant_id), question.figures
    offset, before = sealer.open(request.cursor, bound=bound) if request.cursor else (0, current)
    deadline = Deadline.after(BUDGETS.related_seconds)
    texts, question.compared = nearness.search(covered.meaning_scope, deadline)
    order = sorted(texts, key=lambda seq: (-round(texts[seq].nearness, DIGITS), seq))
    after = offset + request.limit
    ranks = {seq: rank for rank, seq in enumerate(order[offset:after], start=offset + 1)}
    question.reader.load(list(ranks))
    proven = [entry for entry in question.reader.ranked().values() if entry.score.held]
    records = question.reader.ranked_records(proven)
    hits = hits_of(question.ranker, records, [ranks[entry.seq] for entry in proven], question.reads)
    wordless = ranks.keys() - {entry.seq for entry in proven}
    places = {ranks[seq]: RelatedRecord(0.0, texts[seq].row) for seq in wordless}
    hits += related.hits_of(question.candidates, covered, places)
    has_more = after < len(order)
    return SearchPage(
        args={},
        hits=sorted(hits, key=lambda hit: hit.rank or 0),
        has_more=has_more,
        next_cursor=sealer.seal([after, current], bound=bound) if has_more else None,
        counts=None,
        recall=question.recall(question.meaning) | {"ranking_scope": "nearest_vectors"},
        warnings=[*question.warnings(changed=before != current)],
        ranking="meaning",
        model=question.meaning.model,
    )
