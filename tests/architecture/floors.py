"""What each file of ours may import of ours."""

from tests.architecture.fences import WORKER

STORE = "service/records/"
PAPERS = "service/papers/"
OUR_OWN = ("evidence", "renderers", "service")
DURABLE = ("service.durable", "service.database_files")
PORTS = (
    "service.ports",
    "service.port_rules",
    "service.keys",
    "service.lru",
    "service.pdpp",
)
OUTBOUND = ("service.sources.remote.outbound", "service.sources.remote.origin")
CHECKS = ("service.records", "service.papers")

WORKER_MODULES = tuple(file.removesuffix(".py").replace("/", ".") for file in WORKER)

# The first line that fits a file says what of ours it may import.
#: How servers and their tokens are named.
NAMED = ("service.addresses", "service.credentials")
#: The rooms of the store, and those that each may use.
ROOMS = {
    "engine": ("engine", "writing.Writing"),
    "writing": ("writing", "engine", "sql.conditions"),
    "view": ("view", "engine", "writing.languages", "writing.vocabulary"),
    "search": ("search", "view", "engine"),
    "reading": (
        *("reading", "search.required_parts", "view", "engine"),
        "writing.attachments",
    ),
}
FLOORS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("evidence/", ("evidence",), "the vocabulary stands on nothing"),
    ("renderers/", ("evidence", "renderers"), "renderers are pure, pass the value in instead"),
    (
        "service/ports/",
        ("evidence", "service.ports"),
        "the port is what both sides agree on, and depends on neither",
    ),
    ("service/port_rules.py", ("evidence", "service.ports"), "rules stand on the port"),
    ("service/breaker.py", ("evidence",), "it counts failures, whatever of"),
    ("service/lru.py", (), "a cache stands on nothing"),
    ("service/durable.py", (), "it writes files, and knows none of them"),
    ("service/database_files.py", ("evidence", "service.durable"), "files of any database"),
    ("service/networks.py", (), "a table stands on nothing"),
    ("service/extras.py", (), "a table stands on nothing"),
    ("service/keys.py", ("evidence",), "keys seal values, whatever they are of"),
    ("service/pdpp/", ("evidence", "service.pdpp", "service.ports"), "a wire format, both ways"),
    ("service/addresses.py", ("evidence", *NAMED), "they are read, not opened"),
    ("service/place.py", (), "a place is named before anything is opened"),
    (
        "service/access/",
        (
            *("evidence", "service.access", "service.breaker", "service.extras", "service.keys"),
            *("service.networks", "service.ports", "service.settings"),
        ),
        "who may read what; it opens nothing and answers no request",
    ),
    *(
        (
            f"service/records/{engine}/",
            (
                *("evidence", "service.records", "service.place", *DURABLE),
                *("service.access.port", "service.access.tables", "service.access.tokens"),
                "service.extras",
            ),
            "an engine knows records, and no grant, request or body",
        )
        for engine in ("sql", "sqlite", "postgres")
    ),
    *(
        (
            f"service/records/{room}/",
            (
                *("evidence", "service.access", "service.records.intake", *PORTS),
                *("service.meaning.encoder",) * (room == "search"),
                *(f"service.records.{one}" for one in below),
            ),
            "the rooms of the store stand on each other in this order",
        )
        for room, below in ROOMS.items()
    ),
    (
        "service/records/",
        (
            *("evidence", "service.records", "service.access", "service.place"),
            *("service.meaning.encoder", *PORTS),
        ),
        "the store answers inside grants; it knows no caller and no other source",
    ),
    (
        "service/importing/",
        (
            *("evidence", "service.importing", "service.ports", "service.records.writing.ingest"),
            *("service.place", "service.records.intake", "service.records.engine.scopes"),
            *("service.records.writing.streams", "service.records.writing"),
            *("service.records.opening", "service.extras"),
        ),
        "an importer writes to the store, and reads nothing else of the service",
    ),
    (
        "service/syncing/",
        (
            *("evidence", "service.syncing", "service.importing", "service.place"),
            *("service.access.entries", "service.clients", "service.settings", *DURABLE),
            *("service.sources.remote.outbound", "service.records", "service.extras"),
            "service.addresses",
        ),
        "sources fill a store through the importer, and serve nobody",
    ),
    (
        "service/webhook/",
        (
            *("evidence", "service.webhook", "service.access.entries", "service.place"),
            *("service.records", "service.settings", "service.sources.remote.outbound"),
            "service.networks",
        ),
        "it reads which streams changed, and no record",
    ),
    (
        "service/sources/remote/",
        (
            *("evidence", "service.sources", "service.access.packages", "service.access.registry"),
            *("service.addresses", "service.breaker", "service.statuses", *PORTS),
        ),
        "a remote source answers requests and does not depend on its callers",
    ),
    (
        "service/sources/package/",
        ("evidence", "service.sources.package", "service.sources.remote.origin", *PORTS),
        "a package answers from its members, whatever they are",
    ),
    (
        PAPERS,
        ("evidence", "service.papers", "service.sources.remote.outbound", *DURABLE, *PORTS),
        "the library answers requests and does not depend on its callers",
    ),
    (
        "service/meaning/building.py",
        ("evidence", "service.meaning", "service.place", "service.records"),
        "it fills a store with vectors",
    ),
    (
        "service/meaning/papers.py",
        ("evidence", "service.meaning.encoder", "service.papers", "service.records"),
        "it fills a store with the texts of papers, and asks it",
    ),
    (
        "service/meaning/",
        (
            *("evidence", "service.meaning", "service.breaker", "service.settings"),
            *("service.sources.remote.outbound", "service.networks", *DURABLE),
        ),
        "an encoder turns texts into vectors and knows no store",
    ),
    (
        "service/operations/bodies.py",
        ("evidence", "service.operations", "service.ports", "service.pdpp"),
        "the bodies of REST, for it and for `--json`",
    ),
    (
        "service/operations/",
        ("evidence", "renderers", "service.operations", "service.ports"),
        "operations see sources through the port only",
    ),
    ("service/statuses.py", (), "a table stands on nothing"),
    (
        "service/settings/",
        ("service.settings", "service.place", "evidence.limits"),
        "settings are read first, before everything but the limits",
    ),
    (
        "service/mcp/",
        (
            *("evidence", "renderers", "service.access", "service.mcp", "service.operations"),
            *("service.lru", "service.statuses"),
        ),
        "surfaces know operations, and no other surface or upstream",
    ),
    (
        "service/rest/",
        (
            *("evidence", "service.access", "service.operations", "service.rest"),
            *("service.ports", "service.bootstrap.Services"),
            "service.statuses",
            *("service.openapi", "service.llms"),
            "service.running.readiness",
        ),
        "surfaces know operations, and no other surface or upstream",
    ),
    (
        "service/openapi/",
        ("evidence", "service.openapi", "service.operations", "service.ports", "service.statuses"),
        "the document is made from what is declared, and knows nobody who serves it",
    ),
    (
        "service/llms.py",
        ("evidence", "service.openapi", "service.operations"),
        "the page is made from what is declared",
    ),
    (
        "service/running/readiness.py",
        ("evidence", "service.bootstrap.Services"),
        "it asks what is there",
    ),
    (
        "service/pages/",
        (
            *("evidence", "service.bootstrap.Services", "service.clients", "service.operations"),
            *("service.mcp.versions", "service.openapi.PATH", "service.pages", "service.ports"),
            *("service.access.guard", "service.statuses"),
            "service.running.readiness",
        ),
        "pages show what is declared; their forms are clients of MCP, and know its revisions",
    ),
    (
        "service/signin/",
        (
            *("evidence", "service.signin", "service.access", "service.bootstrap.Services"),
            *(
                "service.pages.layout",
                "service.pages.session_path",
                "service.keys",
                "service.networks",
                "service.statuses",
            ),
            *("service.records.opening", "service.records.overview", "service.records.store"),
            "service.sources.remote.outbound",
        ),
        "the authorization server stands beside the surfaces, and answers for our own store only",
    ),
    ("service/running/noted.py", ("service.settings",), "it knows nothing of what it notes"),
    *(
        (
            file,
            (
                *("evidence", "service.access", "service.settings", "service.statuses"),
                *(*WORKER_MODULES, "service.running.turns"),
            ),
            "the worker runs whatever application it is given",
        )
        for file in WORKER
    ),
    (
        "service/demo/",
        ("evidence", "service.access", "service.demo", "service.importing", *DURABLE, STORE),
        "the demo fills a store",
    ),
    (
        "service/clients/",
        ("evidence", *NAMED, "service.clients", *DURABLE),
        "a table knows nobody who reads it",
    ),
    (
        "service/cli/connect.py",
        (
            *("evidence", "service.cli", "service.clients", *NAMED),
            *("service.place", "service.settings", "service.sources.remote.outbound"),
        ),
        "it tells clients of a service, and reads none of its records",
    ),
    (
        "service/doctor/local.py",
        (
            *("evidence", "service.doctor", "service.place", "service.settings"),
            *("service.sources.remote.health_check", STORE, PAPERS),
        ),
        "the one walk that stays on this machine",
    ),
    (
        "service/doctor/sources.py",
        (
            *("evidence", "service.access.entries", "service.access.sidecar", "service.doctor"),
            *("service.place", "service.records", "service.syncing"),
        ),
        "it asks the sources as a round does, and brings nothing",
    ),
    (
        "service/doctor/",
        (
            *("evidence", *NAMED, "service.doctor", "service.mcp"),
            *("service.sources.remote.outbound", "service.sources.remote.health_check"),
        ),
        "the doctor goes the way of a client, and knows nobody who serves",
    ),
    (
        "service/cli/doctor.py",
        ("evidence", "service.cli", *NAMED, "service.doctor", "service.settings"),
        "a command prints what the doctor finds",
    ),
    (
        "service/cli/config.py",
        (
            *("evidence", "service.cli", "service.clients", *NAMED, "service.place"),
            *("service.settings", "service.doctor"),
        ),
        "the check of settings opens the store as the doctor does",
    ),
    (
        "service/cli/stdio.py",
        (
            *("evidence", "service.bootstrap", "service.cli", *NAMED),
            *("service.mcp", "service.place", "service.settings"),
        ),
        "the one command that is a surface",
    ),
    (
        "service/cli/tokens.py",
        (
            *("evidence", "service.clients.writing", *NAMED, "service.settings"),
            *DURABLE,
            "service.sources.remote.outbound",
        ),
        "it refreshes tokens at their server, and reads no records",
    ),
    (
        "service/cli/opening.py",
        (
            *("evidence", "service.bootstrap", "service.cli", *NAMED),
            *("service.operations", "service.place", "service.settings"),
            "service.sources.remote.server",
            *("service.sources.remote.origin", "service.sources.remote.remote_authority"),
        ),
        "the one place where commands open what they read from",
    ),
    (
        "service/cli/export/",
        (
            *("evidence", *NAMED, "renderers.rendering", "service.cli", "service.operations"),
            *("service.ports", "service.pdpp", "service.papers.snapshot_library"),
        ),
        "an export reads through the port, like every reader",
    ),
    (
        "service/cli/",
        (
            *("evidence", "renderers", "service.cli", "service.demo", "service.operations"),
            *("service.clients", *NAMED, "service.settings", STORE, PAPERS),
            *("service.place", "service.statuses"),
            *("service.sources.remote.remote_authority", "service.keys", "service.ports"),
            *("service.access", "service.importing", "service.pdpp", "service.meaning"),
            *("service.syncing", "service.extras", "service.webhook"),
        ),
        "commands use the store and the snapshot, and no other surface",
    ),
    (
        "service/bootstrap.py",
        (
            *("evidence", "renderers.pool", "service.operations", "service.access"),
            *("service.settings", "service.records", "service.sources", "service.papers"),
            *("service.fetching", "service.keys", "service.meaning"),
            "service.ports",
        ),
        "bootstrap builds what surfaces stand on, and knows no surface",
    ),
    (
        "service/fetching.py",
        ("evidence", "service.settings", *OUTBOUND, *CHECKS, *DURABLE),
        "it fetches for bootstrap, and knows nobody who is served",
    ),
    ("service/", OUR_OWN, "the top floor may import everything"),
)
