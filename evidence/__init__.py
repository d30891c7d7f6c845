"""Floor 0: the vocabulary. Standard library and orjson only, no I/O.

Here are the words: what is read, what can go wrong, what bounds it. What works on them stays in
its module (`evidence.fold`, `evidence.wire`, …), so that no name here hides a module.
"""

from evidence.continuation import Continuation
from evidence.envelope import Envelope
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
from evidence.find import Span
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
    FieldRead,
    Hit,
    Match,
    Partial,
    RecordItem,
    RecordPage,
    SchemaIndex,
    SearchPage,
    Source,
    StreamRow,
)
from evidence.query import (
    Query,
    Term,
)
from evidence.version import VERSION
from evidence.work import (
    Deadline,
)

__all__ = [
    "Ambiguous",
    "BUDGETS",
    "Buckets",
    "Budgets",
    "CONTRACT",
    "Continuation",
    "Contract",
    "Deadline",
    "Document",
    "Envelope",
    "EvidenceError",
    "FieldRead",
    "FieldRef",
    "Folded",
    "Forbidden",
    "Gone",
    "Hit",
    "Internal",
    "InvalidRequest",
    "KINDS",
    "Match",
    "NotFound",
    "NotText",
    "Partial",
    "Query",
    "RateLimited",
    "RecordItem",
    "RecordPage",
    "RecordRef",
    "SchemaIndex",
    "SearchPage",
    "Source",
    "Span",
    "StreamRow",
    "Term",
    "TimedOut",
    "TooLarge",
    "Unauthenticated",
    "Unavailable",
    "VERSION",
]
