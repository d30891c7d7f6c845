"""The manifest of our promises: 65 scenarios of five specifications, in our own words.

A test names the scenarios that it checks with `@scenario("004/fan-in/limit-is-global")`.
`test_manifest` fails if a scenario has no test.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Scenario:
    """One promise. `id` is `specification/family/name`."""

    id: str
    requirement: str

    @property
    def specification(self) -> str:
        return self.id.partition("/")[0]


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "000/ladder/text-alone-shows-evidence",
        "Text alone shows the proven window, the id, the field and the read call.",
    ),
    Scenario(
        "000/ladder/context-around-the-mark",
        "A window keeps text around its mark, unless the field has no more.",
    ),
    Scenario(
        "000/ladder/no-proof-no-window",
        "A hit without a proof shows no window, but a call that reads on.",
    ),
    Scenario(
        "000/handles/record-uri-works",
        "A record URI can be read as a resource and given to the read tools.",
    ),
    Scenario(
        "000/handles/field-window-uri-works",
        "A field-window URI can be read as a resource and given to a tool.",
    ),
    Scenario(
        "000/handles/windows-come-with-calls",
        "A window shows text, offsets, match and neighbours' calls, and no URI.",
    ),
    Scenario(
        "000/inline/small-field-inline",
        "A small field comes whole, with size, range and completeness.",
    ),
    Scenario(
        "000/large/metadata-and-a-way-on",
        "Large and binary fields come as size, type and a way to read on.",
    ),
    Scenario(
        "000/parity/rest-describes-evidence",
        "A REST hit describes its window and the request that reads it.",
    ),
    Scenario(
        "000/parity/cli-reads-windows",
        "A command reads the window of a hit without exporting the record.",
    ),
    Scenario(
        "001/tokens/omissions-are-callable",
        "Whatever is left out comes with a call inside the same grant.",
    ),
    Scenario(
        "001/tokens/text-alone-suffices",
        "Search, query and fetch say in text all that is needed to go on.",
    ),
    Scenario(
        "001/links/tools-reach-what-uris-name",
        "What a URI names can be reached with a tool as well.",
    ),
    Scenario(
        "001/links/small-text-needs-no-file", "Small text is read inline, never through a file."
    ),
    Scenario(
        "001/shared/declared-roles-only",
        "Declared roles steer titles and texts; field names are not guessed at.",
    ),
    Scenario(
        "001/shared/binary-stays-metadata",
        "Binary fields show metadata and the blob route, never their bytes.",
    ),
    Scenario(
        "002/endpoint/two-capabilities",
        "Initialising answers with tools and resources, nothing else.",
    ),
    Scenario("002/endpoint/get-is-405", "GET on the endpoint is refused with 405."),
    Scenario(
        "002/endpoint/unknown-version-is-400",
        "An unknown protocol version is refused; none is taken as an old one.",
    ),
    Scenario(
        "002/endpoint/tools-explain-themselves",
        "Each tool has a title and a description of when to use it.",
    ),
    Scenario("002/security/foreign-origin-is-403", "A page of a foreign origin is refused."),
    Scenario("002/search/full-text", "Papers are found by words, best first, with snippets."),
    Scenario("002/search/keyword", "Papers are found by keyword."),
    Scenario(
        "002/details/metadata-lists-templates",
        "Metadata names the preferred and the available summaries.",
    ),
    Scenario(
        "002/details/summary-is-content",
        "A summary comes as its whole content, never as an address.",
    ),
    Scenario("002/details/missing-source-is-said", "A paper without source says so."),
    Scenario("002/facets/sorted-by-papers", "Facets come with counts, most papers first."),
    Scenario(
        "002/resources/summary-by-template",
        "A summary resource names its template, or means the preferred one.",
    ),
    Scenario("002/resources/translation", "A translation resource gives the translated text."),
    Scenario("002/sizes/tool-cuts-with-a-marker", "A tool cuts at max_chars and marks the cut."),
    Scenario(
        "002/sizes/resource-cuts-with-a-marker", "A resource cuts at its default and marks the cut."
    ),
    Scenario(
        "002/assets/unknown-template", "An unknown template is an error that lists the known ones."
    ),
    Scenario("002/assets/unreachable-asset", "An asset that cannot be had is an error of its own."),
    Scenario("002/limits/query-length", "A query over 500 characters is refused."),
    Scenario("002/limits/page-size", "A page over 100, or one too deep, is refused."),
    Scenario(
        "003/search/proof-in-both-channels",
        "The same window stands in text, in results and in the ladder.",
    ),
    Scenario(
        "003/search/unproven-shows-identity",
        "A hit without proof names no body field, but how to open it.",
    ),
    Scenario(
        "003/continuations/without-resources",
        "A cut window goes on by a tool call that is spelled out.",
    ),
    Scenario(
        "003/continuations/resource-equals-tool",
        "A window read as a resource is the window the tool reads.",
    ),
    Scenario(
        "003/inline/window-in-content", "A small field stands in content, with its completeness."
    ),
    Scenario(
        "003/materialization/no-links-for-windows",
        "A window has no resource link; its URI is hidden and works.",
    ),
    Scenario(
        "003/materialization/projected-fetch-inline",
        "A projected fetch stands inline under its own id, without links.",
    ),
    Scenario(
        "003/order/evidence-before-wrappers",
        "A hit's excerpt, field, id and call stand before anything general.",
    ),
    Scenario("003/order/ids-not-uris", "Hits show ids that calls take, never raw URIs."),
    Scenario(
        "003/order/uris-are-taken",
        "Record URIs are taken by fetch, by field reads and as resources.",
    ),
    Scenario(
        "004/setup/one-recommended-path",
        "Setup shows one way first and no profiles.",
    ),
    Scenario(
        "004/setup/stdio-same-surface",
        "The local adapter has no profiles and the same tools.",
    ),
    Scenario("004/tools/exact-set", "The tools are exactly the six, and no event or blob tool."),
    Scenario(
        "004/tools/connection-id-only", "Tools offer connection_id and never its deprecated name."
    ),
    Scenario(
        "004/tools/same-contract-same-grant",
        "A call means the same request to the same grant as REST does.",
    ),
    Scenario(
        "004/owner/owner-tokens-refused", "Owner credentials are refused before anything is done."
    ),
    Scenario(
        "004/footprint/budget-and-members",
        "The tool list stays under its budget and gains no tool.",
    ),
    Scenario(
        "004/schema/index-names-every-stream",
        "The index is compact and names every stream that is granted.",
    ),
    Scenario(
        "004/schema/shared-stream-row-by-row",
        "A shared stream is described for each of its connectors.",
    ),
    Scenario(
        "004/schema/one-connection-in-full",
        "One connection's stream is described with all it can be asked.",
    ),
    Scenario("004/schema/legend", "Short flags come with a legend, enough to build calls from."),
    Scenario(
        "004/schema/full-needs-a-stream",
        "Full detail without a stream is refused before anything is read.",
    ),
    Scenario(
        "004/schema/full-is-scoped",
        "Full detail is one stream of one connection, bounded and not repeated.",
    ),
    Scenario(
        "004/schema/cursors-and-counts-in-text", "Cursors, bookmarks and counts stand in the text."
    ),
    Scenario(
        "004/fan-in/limit-is-global",
        "The limit is for all connections together; each hit names its source.",
    ),
    Scenario(
        "004/fan-in/one-connection",
        "connection_id keeps a search, and its limit, in one connection.",
    ),
    Scenario(
        "004/fetch/five-members-mirrored",
        "A document has five members, and the text is their exact mirror.",
    ),
    Scenario(
        "004/fetch/projection-leaves-nothing",
        "A projected document holds nothing of the other fields.",
    ),
    Scenario(
        "004/fetch/projected-records",
        "Projected records hold the named fields and declared identity only.",
    ),
    Scenario(
        "004/ambiguity/bounded-candidates",
        "An ambiguous read lists candidates, bounded, from the grant alone.",
    ),
)

BY_ID = {scenario.id: scenario for scenario in SCENARIOS}


def scenario(*ids: str) -> Callable[[Test], Test]:
    """Marks a test as checking these scenarios; unknown ids fail at import."""
    unknown = [name for name in ids if name not in BY_ID]
    if unknown or not ids:
        raise LookupError(f"No such scenario: {unknown}. tests/spec/scenarios.py lists them.")
    return lambda test: test
