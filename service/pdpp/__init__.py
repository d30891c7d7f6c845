"""The PDPP wire format: decoding, encoding, routes and query parameters."""

from typing import Final

#: Codes of the warnings of a search body that hold what PDPP has no member for, in `detail`.
#: `left_out`: the number of matching records that `sort=newest` does not show.
LEFT_OUT: Final = "newest_page_only"
#: `retry_arguments`: in place of those given they have hits; null leaves an argument out.
NO_HITS: Final = "no_hits"
