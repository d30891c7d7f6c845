"""The PDPP wire format: decoding, encoding, routes and query parameters."""

from typing import Final

#: Codes of the warnings in a search body whose `detail` has values for which PDPP has no member.
#: `left_out`: the number of matching records that `sort=newest` does not show.
NEWEST_PAGE_ONLY: Final = "newest_page_only"
#: `retry_arguments`: replacements with which the search has hits; null removes an argument.
NO_HITS: Final = "no_hits"
