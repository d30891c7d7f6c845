"""Search over many sources: one limit, one order, one cursor, and a report for each source.

A page asks the sources without shown hits, and a first group of those that have more. Their hits
are merged by coverage and passage. So every source with hits appears as early as the limit and
better hits of others allow, and the cursor contains the cursors of only one group.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from evidence.hits import Counts, Hit, SearchPage
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import FanIn, distinct
from evidence.page_order import ENOUGH, related_most
from evidence.ranking import TAIL
from evidence.work import Deadline, Done, Each, Failed
from service.keys import Sealer, identity
from service.port_rules import several_streams
from service.ports import Answer, ResourceServer, SearchQuery
from service.sources.package import gathering
from service.sources.package.cursor import LOST, Progress, State, seal, unseal
from service.sources.package import membership
from service.sources.package.membership import Child, Locations, Membership
from service.sources.package.merge import Page, RecordMarks, SourceReader, Turns, fill, related_of

#: The code of a warning that no record has the value of a filter.
_NO_VALUE: Final = "filter_matches_nothing"


def covered(members: Membership, request: SearchQuery) -> tuple[membership.StreamLocation, ...]:
    """The locations a search covers; refuses what a single grant would."""
    locations = members.within(request.connection_id)
    if request.streams:
        names = dict.fromkeys(request.streams)
        groups = (members.stream(n, request.connection_id, param="streams") for n in names)
        locations = tuple(location for group in groups for location in group)
    if request.filter and len({location.member.stream for location in locations}) != 1:
        raise several_streams()
    return locations


def narrowed(request: SearchQuery, child: Child, locations: Locations) -> SearchQuery:
    """The request for one child, with those of the named streams that it has."""
    names = {location.member.stream for location in locations if location.child is child}
    return replace(request, streams=tuple(name for name in request.streams if name in names))


class Search:
    """One page over several children."""

    def __init__(self, locations: Locations, request: SearchQuery, sealer: Sealer) -> None:
        self._locations, self._request, self._sealer = locations, request, sealer
        children = membership.children_of(locations)
        members = [[child.name, child.grant_id] for child in children]
        self._bound = identity(request, "package search", members)
        if request.cursor:
            self._state = unseal(request.cursor, sealer, self._bound, len(children))
        else:
            self._state = State([Progress() for _ in children])
        self._readers = [SourceReader(*pair) for pair in zip(children, self._state.sources)]
        self._by_time = request.sort == "newest"
        self._turns = Turns(request.query, by_time=self._by_time)
        self._answers: list[SearchPage] = []

    def page(self, fan_out: Each, deadline: Deadline) -> Answer[SearchPage]:
        """The merged page; raises the first error if every source fails."""
        pairs = Counter((p.member.stream, p.member.connection_id) for p in self._locations)
        shared = {pair for pair, holders in pairs.items() if holders > 1}
        if shared:
            self._state.counts = None
        deadline.check("opening the sources of a package")
        request, marks, hits = self._request, RecordMarks(self._state, shared), list[Hit]()
        tail = TAIL if request.cut_tail and not (request.cursor or self._by_time) else 0.0
        turn = (self._readers, self._turns, marks, tail)
        cut = False
        for _ in range(BUDGETS.fan_in_rounds):
            readers = self._next_readers(request.limit - len(hits))
            if cut or not readers or deadline.expired():
                break
            part = deadline.share(BUDGETS.fan_in_share, most=BUDGETS.source_seconds)
            self._ask(readers, fan_out, part)
            if not any(reader.unmet for reader in self._readers):
                cut = fill(hits, self._room(hits), *turn)
        cut = fill(hits, self._room(hits), *turn)
        if not request.cursor and not self._by_time:
            most = related_most(request.limit) if hits else request.limit
            free = 0 if cut and not self._is_weak(hits) else request.limit - len(hits)
            hits += related_of(self._readers, marks, min(most, free))
        first, failed = not request.cursor, all(reader.failed for reader in self._readers)
        queried = any(reader.queried for reader in self._readers)
        if not hits and (not queried or (first and failed)):
            raise gathering.first_error(reader.error for reader in self._readers)
        for reader in self._readers:
            reader.close(self._state)
        return Answer(replace(self._merged(hits), tail_cut=cut))

    def _room(self, hits: Sequence[Hit]) -> int:
        """How many hits that hold a word a page has room for."""
        limit, related = self._request.limit, sum(len(reader.related) for reader in self._readers)
        if not related or self._request.cursor or not self._is_weak(hits):
            return limit
        return limit - min(related, related_most(limit))

    def _is_weak(self, hits: Sequence[Hit]) -> bool:
        """Whether no hit covers enough of the question for related ones to come last."""
        heads = (self._turns.head(reader) for reader in self._readers if reader.hits)
        return all((hit.coverage or 0.0) < ENOUGH for hit in (*hits[:1], *heads))

    def _next_readers(self, room: int) -> list[SourceReader]:
        """The sources to ask next to fill the page."""
        if room <= 0:
            return []
        able = [r for r in self._readers if not (r.progress.state or r.failed or r.hits)]
        fresh = sorted((r for r in able if r.progress.fresh), key=lambda r: r.progress.tries)
        begun = [reader for reader in able if not reader.progress.fresh]
        if self._by_time:
            return [*fresh, *begun][: BUDGETS.fan_in_width]
        if room <= sum(bool(reader.hits) for reader in self._readers):
            return []
        return [*fresh, *begun[: BUDGETS.fan_in_group]][: BUDGETS.fan_in_width]

    def _ask(self, readers: Sequence[SourceReader], fan_out: Each, deadline: Deadline) -> None:
        answer = partial(self._answer, deadline)
        for reader, outcome in zip(readers, fan_out(answer, readers, deadline)):
            if not reader.begun:  # other requests used every thread: it was not asked
                continue
            reader.queried = True
            if isinstance(outcome, Done):
                reader.absorb(outcome.value)
                if outcome.value.answer is not None:
                    self._answers.append(outcome.value.answer)
            elif isinstance(outcome, Failed):
                reader.refuse(outcome.error)
            else:
                reader.late = True

    def _answer(self, deadline: Deadline, reader: SourceReader) -> Page:
        """The page of a source with its next hit; earlier pages are skipped."""
        deadline.check("waiting for a turn")
        reader.begun = True
        taken, server = reader.progress.taken, reader.child.open(deadline)
        page = self._read(server, reader, Page(reader.progress.cursor, reader.progress.at))
        for _ in range(BUDGETS.fan_in_steps):
            following = page.following()
            if following is None or taken < following.at:
                break
            deadline.check("paging through a source")
            page = self._read(server, reader, following)
        return page

    def _read(self, server: ResourceServer, reader: SourceReader, page: Page) -> Page:
        """A page of a source. Only its first page may be widened."""
        request = narrowed(self._request, reader.child, self._locations)
        taken = reader.progress.taken
        request = replace(
            request,
            limit=page.size(taken, request.limit),
            cursor=page.cursor,
            widen=request.widen and not taken and page.cursor is None,
            cut_tail=False,
        )
        answer = server.search(request)
        return replace(page, cursor=answer.reopen or page.cursor, answer=answer.value)

    def _merged(self, hits: list[Hit]) -> SearchPage:
        """The page with these hits and the combined reports of the sources."""
        state, readers, answers = self._state, self._readers, self._answers
        before, state.earlier_hits = state.earlier_hits, state.earlier_hits + len(hits)
        waiting = sum(reader.unmet for reader in readers)
        silent = sum(reader.failed or reader.progress.state == LOST for reader in readers)
        missing = bool(waiting or silent)
        warnings = _notices(answers, complete=not missing)
        warnings += [gathering.stuck(reader.child) for reader in readers if reader.stuck]
        absent = [] if missing or self._request.cursor else _in_all(a.absent_words for a in answers)
        omitted = [answer.left_out for answer in answers if answer.left_out is not None]
        recall = _recall(answers, len(readers) - waiting - silent, complete=not missing)
        ranking = max((answer.ranking or "" for answer in answers), default="") or None
        by_words = [r.child.name for r in readers if r.ranking and r.ranking != ranking]
        if by_words:
            recall["ranked_by_words"] = by_words[: CONTRACT.candidates]
        return SearchPage(
            args={},
            hits=[replace(hit, rank=rank) for rank, hit in enumerate(hits, start=before + 1)],
            has_more=state.unfinished or any(reader.stuck for reader in readers),
            next_cursor=seal(state, self._sealer, self._bound) if state.unfinished else None,
            counts=self._counts(exact=not missing),
            recall=recall,
            warnings=distinct(warnings)[: CONTRACT.candidates],
            as_of=tuple(distinct(stale for answer in answers for stale in answer.as_of)),
            absent_words=absent,
            nearest_words={word: near for word in absent if (near := _nearest(answers, word))},
            retry=next((answer.retry for answer in answers if answer.retry), None),
            left_out=sum(omitted) if omitted else None,
            ranking=ranking,
            model=next((answer.model for answer in answers if answer.model), None),
            fan_in=FanIn(len(readers), waiting, gathering.sources(readers)),
        )

    def _counts(self, *, exact: bool) -> Counts | None:
        """The sum of the counts of all sources that answered."""
        counts = self._state.counts
        for reader in self._readers:  # the cursor counts the hits of fresh ones later
            counts = reader.counted(counts, fresh=reader.progress.fresh)
        return counts and replace(counts, exact=counts.exact and exact)


def _notices(answers: Sequence[SearchPage], *, complete: bool) -> list[dict[str, Any]]:
    """The warnings of the sources. No record has a value only if no source has such a record."""
    values = [
        {_value(notice) for notice in answer.warnings if notice.get("code") == _NO_VALUE}
        for answer in answers
    ]
    nowhere = set.intersection(*values) if values and complete else set[str]()
    return [
        notice
        for answer in answers
        for notice in answer.warnings
        if notice.get("code") != _NO_VALUE or _value(notice) in nowhere
    ]


def _value(notice: dict[str, Any]) -> str:
    """The field and the value that a filter does not find."""
    return str(notice.get("message")).partition(". Filter values")[0]


def _recall(answers: Sequence[SearchPage], searched: int, *, complete: bool) -> dict[str, Any]:
    """The combined recall of the sources; `searched` is the number that answered."""
    reports = [answer.recall for answer in answers]
    bounded = [report for report in reports if report.get("complete") is False]
    recall: dict[str, Any] = {
        "complete": complete and not bounded,
        "ranking_scope": "candidate_window" if bounded else "all_matches",
        "truncated": bool(bounded),
        "sources_searched_count": searched,
    }
    limits = [row["candidate_window_limit"] for row in bounded if "candidate_window_limit" in row]
    if limits:
        recall["candidate_window_limit"] = min(limits)
    narrower = [query for report in reports for query in report.get("narrower_searches", ())]
    if narrower:
        recall["narrower_searches"] = list(dict.fromkeys(narrower))
    return recall


def _in_all(lists: Iterable[Sequence[str]]) -> list[str]:
    """The words common to all lists, in the order of the first."""
    first, *rest = [*lists] or [()]
    return [word for word in first if all(word in words for words in rest)]


def _nearest(answers: Sequence[SearchPage], word: str) -> list[str]:
    """The closest spellings of a word from the sources in turn, each once."""
    words = (near for answer in answers for near in answer.nearest_words.get(word, ()))
    return list(dict.fromkeys(words))[: CONTRACT.candidates]
