"""Search over many sources: one limit, one order, one cursor, and a word on who answered.

A page first asks the sources that have shown nothing yet, then a first group of those that have
more. So every source with hits is met as early as the limit allows, and the cursor needs to hold
the cursors of one group only.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from evidence.envelope import Envelope
from evidence.errors import InvalidRequest
from evidence.limits import BUDGETS, CONTRACT
from service.pdpp.decode import pick, warnings_of
from evidence.work import Deadline, Done, Each, Failed
from service.cursors import Sealer
from service.sources.package import reports
from service.sources.package.cursor import LOST, Progress, State, seal, unseal
from service.sources.package.membership import Child, Membership, Place, children_of
from service.sources.package.merge import Hit, Page, Seen, SourceReader, fill
from service.ports import ResourceServer, SearchQuery


def covered(members: Membership, request: SearchQuery) -> tuple[Place, ...]:
    """The places a search covers; refuses what a single grant would."""
    places = members.within(request.connection_id)
    if request.streams:
        named = dict.fromkeys(request.streams)
        groups = (members.stream(n, request.connection_id, param="streams") for n in named)
        places = tuple(place for group in groups for place in group)
    if request.filter and len({place.held.stream for place in places}) != 1:
        raise InvalidRequest(
            "A filter in search needs exactly one stream. Retry with streams naming one stream.",
            code="invalid_filter",
            param="filter",
            retry_with="streams",
        )
    return places


def narrowed(request: SearchQuery, child: Child, places: Sequence[Place]) -> SearchQuery:
    """The request as one child is asked: with those of the named streams that it holds."""
    held = {place.held.stream for place in places if place.child is child}
    return replace(request, streams=tuple(name for name in request.streams if name in held))


class Search:
    """One page over several children."""

    def __init__(
        self,
        places: Sequence[Place],
        request: SearchQuery,
        sealer: Sealer,
    ) -> None:
        self._places, self._request, self._sealer = places, request, sealer
        children = children_of(places)
        members = [[child.name, child.grant_id] for child in children]
        self._bound: list[Any] = ["package search", members, request.query]
        self._bound += [request.streams, request.connection_id, request.filter]
        if request.cursor:
            self._state = unseal(request.cursor, sealer, self._bound, len(children))
        else:
            self._state = State([Progress() for _ in children])
        self._readers = [SourceReader(*pair) for pair in zip(children, self._state.sources)]
        self._answers: list[dict[str, Any]] = []

    def page(self, each: Each, deadline: Deadline) -> Envelope:
        """The envelope of the page; raises the first error where every source fails."""
        pairs = Counter((p.held.stream, p.held.connection_id) for p in self._places)
        shared = {pair for pair, holders in pairs.items() if holders > 1}
        if shared:
            self._state.count = None
        deadline.check("opening the sources of a package")
        seen, hits = Seen(self._state, shared), list[Hit]()
        for _ in range(BUDGETS.fan_in_rounds):
            wanted = self._wanted(self._request.limit - len(hits))
            if not wanted or deadline.expired():
                break
            part = deadline.share(BUDGETS.fan_in_share, most=BUDGETS.source_seconds)
            self._ask(wanted, each, part)
            if not any(reader.unmet for reader in self._readers):
                fill(hits, self._request.limit, self._readers, seen)
        fill(hits, self._request.limit, self._readers, seen)
        first, failed = not self._request.cursor, all(reader.failed for reader in self._readers)
        asked = any(reader.asked for reader in self._readers)
        if not hits and (not asked or (first and failed)):
            raise reports.first_error(reader.error for reader in self._readers)
        for reader in self._readers:
            reader.close(self._state)
        return self._envelope(hits)

    def _wanted(self, room: int) -> list[SourceReader]:
        """Whom to ask next, where so much of the page is not taken."""
        room -= sum(bool(reader.hits) for reader in self._readers)
        if room <= 0:
            return []
        able = [r for r in self._readers if not (r.progress.state or r.failed or r.hits)]
        fresh = sorted((r for r in able if r.progress.fresh), key=lambda r: r.progress.tries)
        begun = [reader for reader in able if not reader.progress.fresh]
        return fresh[: BUDGETS.fan_in_width] or begun[: BUDGETS.fan_in_group]

    def _ask(self, wanted: Sequence[SourceReader], each: Each, deadline: Deadline) -> None:
        answer = partial(self._answer, deadline)
        for reader, outcome in zip(wanted, each(answer, wanted, deadline)):
            if not reader.begun:  # others held every thread: nothing is known of it yet
                continue
            reader.asked = True
            if isinstance(outcome, Done):
                reader.absorb(outcome.value)
                self._answers.append(outcome.value.body)
            elif isinstance(outcome, Failed):
                reader.refuse(outcome.error)
            else:
                reader.late = True

    def _answer(self, deadline: Deadline, reader: SourceReader) -> Page:
        """The page of a source that has its next hit; pages before that are passed over."""
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
        request = narrowed(self._request, reader.child, self._places)
        size = page.size(reader.progress.taken, request.limit)
        answer = server.search(replace(request, limit=size, cursor=page.cursor))
        return replace(page, body=answer.body)

    def _envelope(self, hits: list[Hit]) -> Envelope:
        state, readers = self._state, self._readers
        left = state.left
        waiting = sum(reader.unmet for reader in readers)
        missing = waiting or any(r.failed or r.progress.state == LOST for r in readers)
        exact = state.exact and not missing and not any(r.uncounted for r in readers)
        warnings = [found for answer in self._answers for found in warnings_of(answer)]
        warnings += [reports.stuck(reader.child) for reader in readers if reader.stuck]
        body: dict[str, Any] = {
            "object": "list",
            "url": "/v1/search",
            "has_more": left or any(reader.stuck for reader in readers),
            "data": hits,
            "meta": {
                "count": state.count,
                "count_accuracy": "exact" if exact else "lower_bound",
                "recall": _recall(self._answers, complete=not missing),
                "warnings": _once(warnings)[: CONTRACT.candidates],
                "package": {
                    "member_count": len(readers),
                    "waiting_count": waiting,
                    "partial": any(reader.failed for reader in readers),
                    "sources": reports.sources(readers),
                },
            },
        }
        if left:
            body["next_cursor"] = seal(state, self._sealer, self._bound)
        return Envelope(body)


def _recall(answers: Sequence[dict[str, Any]], *, complete: bool) -> dict[str, Any]:
    """What the sources said of how far they looked, together."""
    said = [pick(answer.get("meta") or {}, "recall") or {} for answer in answers]
    bounded = [each for each in said if each.get("complete") is False]
    found: dict[str, Any] = {
        "complete": complete and not bounded,
        "ranking_scope": "candidate_window" if bounded else "all_matches",
        "truncated": bool(bounded),
    }
    limits = [
        each["candidate_window_limit"] for each in bounded if "candidate_window_limit" in each
    ]
    return found | ({"candidate_window_limit": min(limits)} if limits else {})


def _once(warnings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [found for n, found in enumerate(warnings) if found not in warnings[:n]]
