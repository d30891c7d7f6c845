"""Floor 0: the vocabulary. Standard library and orjson only, no I/O.

Here are the words: what is read, what can go wrong, what bounds it. What works on them stays in
its module (`evidence.fold`, `evidence.wire`, …), so that no name here hides a module.
"""

from evidence.account import Account, Allowance, Trace
from evidence.binary import Bytes
from evidence.continuation import Continuation
from evidence.envelope import Envelope, SearchEnvelope
from evidence.errors import (
    Ambiguous,
    EvidenceError,
    Forbidden,
    Gone,
    Internal,
    InvalidRequest,
    KINDS,
    NotFound,
    NotText,
    RateLimited,
    TimedOut,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from evidence.find import Haystack, Span
from evidence.fold import Folded
from evidence.handles import (
    FieldRef,
    RecordRef,
)
from evidence.limits import (
    BUDGETS,
    Budgets,
    CONTRACT,
    Contract,
)
from evidence.model import (
    Buckets,
    Document,
    FanIn,
    FieldRead,
    Hit,
    Match,
    Partial,
    RecordItem,
    RecordPage,
    SchemaIndex,
    SearchPage,
    Source,
    SourceReport,
    StreamRow,
    WordsAlone,
)
from evidence.paper_uris import PaperUri
from evidence.papers import (
    Heading,
    Paper,
    PaperFacets,
    PaperFinds,
    PaperHit,
    PaperOutline,
    PaperPage,
    PaperText,
    TextMatch,
)
from evidence.query import (
    Query,
    Term,
)
from evidence.version import VERSION
from evidence.work import (
    Deadline,
    Done,
    Each,
    Failed,
    Late,
)

__all__ = [
    "Account",
    "Allowance",
    "Ambiguous",
    "BUDGETS",
    "Buckets",
    "Budgets",
    "Bytes",
    "CONTRACT",
    "Continuation",
    "Contract",
    "Deadline",
    "Document",
    "Done",
    "Each",
    "Envelope",
    "EvidenceError",
    "Failed",
    "FanIn",
    "FieldRead",
    "FieldRef",
    "Folded",
    "Forbidden",
    "Gone",
    "Haystack",
    "Heading",
    "Hit",
    "Internal",
    "InvalidRequest",
    "KINDS",
    "Late",
    "Match",
    "NotFound",
    "NotText",
    "Paper",
    "PaperFacets",
    "PaperFinds",
    "PaperHit",
    "PaperOutline",
    "PaperPage",
    "PaperText",
    "PaperUri",
    "Partial",
    "Query",
    "RateLimited",
    "RecordItem",
    "RecordPage",
    "RecordRef",
    "SchemaIndex",
    "SearchEnvelope",
    "SearchPage",
    "Source",
    "SourceReport",
    "Span",
    "StreamRow",
    "Term",
    "TextMatch",
    "TimedOut",
    "TooLarge",
    "Trace",
    "Unauthenticated",
    "Unavailable",
    "VERSION",
    "WordsAlone",
]
