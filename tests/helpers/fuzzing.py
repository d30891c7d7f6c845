"""schemathesis over `/openapi.json`: any number of requests, judged by the document itself."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from zlib import crc32

import schemathesis
from flask import Flask
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
)
PHASES = ("examples", "coverage", "fuzzing")
#: JSON-RPC answers 200 to a message that it refuses, so the status means nothing there.
MESSAGES = {
    "include-path-regex": "^/mcp",
    "checks": {"negative_data_rejection": {"enabled": False}},
}
#: Values from the demo, by parameter name.
KNOWN_RECORDS: dict[str, tuple[Any, ...]] = {
    "stream": ("messages", "notes", "payments", "nowhere"),
    "record_id": ("m_0042", "m_007"),
    "blob_id": ("m_0007.txt", "nowhere"),
    "Range": ("bytes=0-99", "bytes=-9", "bytes=999999-"),
    "connection_id": ("gmail-work",),
    "field": ("body", "subject", "size"),
    "q": ("lantern", "quorum elm", "invoice"),
    "streams": (["messages"], ["notes"]),
    "metric": ("count", "max"),
    "group_by": ("folder",),
    "limit": (1, 7),
}
KNOWN_PAPERS: dict[str, tuple[Any, ...]] = {
    "paper_id": ("10.5555/rung.tides", "nothing of this name"),
    "category": ("keyword", "author"),
    "keyword": ("navigation",),
    "max_chars": (100,),
    "lang": ("zh",),
}


@dataclass
class Report:
    """The requests, how they were answered, and the failures."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return self.statuses.total()

    def labels(self, *statuses: int) -> set[str]:
        """The operations, such as `GET /v1/search`, that answered with one of these."""
        return {label for label, status in self.statuses if status in statuses}


def fuzz(
    app: Flask,
    token: str | None,
    *,
    examples: int,
    known: Mapping[str, tuple[Any, ...]],
    seed: int = 1,
) -> Report:
    """Requests everything `app` describes, at most `examples` times each if values are random.

    `known` are values that exist, by parameter name: many requests get some of them, and
    some get nothing else.
    """
    config = SchemathesisConfig.from_dict({"seed": seed, **_config(token, examples)})
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app, config=config)
    schema.hooks.register_hook_with_name(_placed(known), "map_path_parameters")
    schema.hooks.register_hook_with_name(_asked(known), "map_query")
    schema.hooks.register_hook_with_name(_asked(known), "map_headers")
    report = Report()
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            _note(event, report)
        elif isinstance(event, (events.NonFatalError, events.FatalError)):
            report.failures.append(f"schemathesis itself: {event}")
    return report


def _config(token: str | None, examples: int) -> dict[str, Any]:
    """The configuration of schemathesis, without a file."""
    secret = {"Authorization": f"Bearer {token}"} if token else {}
    return {
        "headers": {"Accept-Encoding": "identity", **secret},
        "continue-on-failure": True,
        "generation": {
            "max-examples": examples,
            "deterministic": True,
            "no-shrink": True,
            "with-security-parameters": False,
            "database": "none",
        },
        "checks": {"enabled": False, **{name: {"enabled": True} for name in CHECKS}},
        "phases": {"enabled": False, **{name: {"enabled": True} for name in PHASES}},
        "operations": [MESSAGES],
    }


def _choice(values: Any) -> int:
    """A number that is the same for the same values, so that a run can be repeated."""
    return crc32(repr(values).encode("utf-8", "surrogatepass"))


def _placed(known: Mapping[str, tuple[Any, ...]]) -> Any:
    """Drawn addresses are often the same, so the existing ones take turns."""
    turns = count()

    def hook(context: Any, values: dict[str, Any] | None) -> dict[str, Any] | None:
        if not values or not (choice := next(turns)) % 4:
            return values
        some = {
            name: known[name][choice // 4 % len(known[name])] for name in values if name in known
        }
        return {**values, **some}

    return hook


def _asked(known: Mapping[str, tuple[Any, ...]]) -> Any:
    def hook(context: Any, values: dict[str, Any] | None) -> dict[str, Any] | None:
        if not values:
            return values
        choice = _choice(values)
        some = {
            name: known[name][choice // 4 % len(known[name])] for name in values if name in known
        }
        return (values, {**values, **some}, some, values)[choice % 4]

    return hook


def _note(event: events.ScenarioFinished, report: Report) -> None:
    recorder = event.recorder
    for case_id, interaction in recorder.interactions.items():
        label = recorder.cases[case_id].value.operation.label
        status = interaction.response.status_code if interaction.response else 0
        report.statuses[label, status] += 1
    report.failures += _failures(recorder)


def _failures(recorder: Any) -> Iterator[str]:
    for case_id, checks in recorder.checks.items():
        for check in checks:
            if check.failure_info is not None:
                case = recorder.cases[case_id].value
                yield f"{check.name}: {check.failure_info.failure}\n{case.as_curl_command()}"
