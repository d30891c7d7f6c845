"""Lists, as text, the sources of a search page, and states what the page may lack."""

from collections import Counter

from evidence.hits import SearchPage
from evidence.limits import BUDGETS, CONTRACT
from evidence.model import FanIn, Source, SourceReport
from evidence.text import clip
from renderers.rendering import name_source, quoted, value_of


def mix(page: SearchPage) -> list[str]:
    """The connections of a grant and their hits, if there are several."""
    mix = Counter([hit.source for hit in page.hits])
    if len(mix) < 2:
        return []
    keyed = {hit.source for number, hit in page.numbered() if number <= CONTRACT.full_hits}
    entries = [
        f"{name_source(source) if source in keyed else _with_connector(source)} {count}"
        for source, count in mix.items()
    ]
    return ["sources: " + ", ".join(entries)]


def _with_connector(source: Source) -> str:
    key = clip(source.connector_key or "", BUDGETS.label_chars)
    return f"{name_source(source)} connector_key={value_of(key)}" if key else name_source(source)


def only_sources_miss(page: SearchPage) -> bool:
    """True if only sources that failed or were not asked yet may have further hits."""
    fan_in = page.fan_in
    return fan_in is not None and fan_in.incomplete and not page.recall.get("truncated")


def sources(fan_in: FanIn) -> list[str]:
    """The sources of a package that answered; a line for each that did not, twelve at most."""
    answered, silent = fan_in.of("answered"), fan_in.silent
    entries = [f"{value_of(source.name)} {source.hits}" for source in answered if source.hits]
    if len(entries) > CONTRACT.candidates:
        entries[CONTRACT.candidates :] = [f"and {len(entries) - CONTRACT.candidates} more"]
    counts = {
        "failed": len(fan_in.of("failed")),
        "timed out": len(fan_in.of("timed_out")),
        "not queried yet": fan_in.waiting,
    }
    line = f"sources: {len(answered)} answered" + (f" ({', '.join(entries)})" if entries else "")
    line += "".join(f", {count} {state}" for state, count in counts.items() if count)
    lines = [line, *map(_silence, silent[: CONTRACT.candidates])]
    if len(silent) > CONTRACT.candidates:
        lines.append(f"  and {len(silent) - CONTRACT.candidates} more did not answer.")
    return lines


def _silence(source: SourceReport) -> str:
    """Why a source did not answer, and what to do."""
    message = f" {quoted(source.message)}" if source.message else ""
    state = source.state.replace("_", " ")
    code = f" {value_of(source.code)}" if source.code else ""
    return f"  {value_of(source.name)} {state}{code}:{message} {source.next_step or ''}".rstrip()


def recall(page: SearchPage) -> list[str]:
    """The matches that were ranked, unless all were; warnings name the rest."""
    if page.recall.get("ranking_scope") == "all_matches":
        return []
    limit = page.recall.get("candidate_window_limit")
    ranked = f"the best {limit} candidates" if limit else "the best candidates"
    return [
        f"recall: only {ranked} were ranked. To reach other matches, narrow the search with "
        "words=all, since, until, streams, connection_id or filter."
    ]
