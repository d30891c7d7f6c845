"""Libraries, and the only files that may import them."""

from tests.architecture.sources import PACKAGES
from tests.architecture.test_sql import SQL

#: The worker of gunicorn.
WORKER = tuple(f"service/running/{name}.py" for name in ("draining", "buffering", "connection"))

IMPORTING = (
    *(("charset_normalizer", "source"), ("clevercsv", "readers/tables"), ("pypdf", "readers/pdf")),
    *(("inscriptis", "rows"), ("olefile", "readers/outlook")),
    *(
        ("icalendar", "readers/calendars_and_cards"),
        ("vobject", "readers/calendars_and_cards"),
        ("webencodings", "charsets"),
        ("yaml", "readers/notes"),
        ("openpyxl", "readers/workbook_parts"),
    ),
)
# Libraries and corners of the standard library, and the only places that may import them.
FENCES: dict[str, tuple[str, ...]] = {
    "Stemmer": ("evidence/language.py",),
    "authlib": ("service/signin/",),
    "fido2": ("service/access/owner.py",),
    "joserfc": ("service/access/issuers.py",),
    "functools.cached_property": ("evidence/cached.py",),  # whose threads wait for each other
    "orjson": tuple(f"{package}/" for package in PACKAGES),
    "flask": (
        *("service/app.py", "service/mcp/blueprint.py", "service/rest/", "service/pages/"),
        *("service/running/hooks.py", "service/running/metrics.py", "service/signin/"),
    ),
    "werkzeug": (
        *("service/app.py", "service/access/guard.py", "service/mcp/blueprint.py", "service/rest/"),
        "service/running/hooks.py",
    ),
    "gunicorn": (*WORKER, "service/running/noted.py"),
    "prometheus_client": (
        *("service/running/metrics.py", "service/running/noted.py", "service/serving.py"),
    ),
    **{name: (f"service/importing/{module}.py",) for name, module in IMPORTING},
    "striprtf": tuple(f"service/importing/readers/{name}.py" for name in ("documents", "outlook")),
    "imapclient": ("service/syncing/kinds/imap.py",),
    "keyring": ("service/syncing/owner_file.py",),
    "watchfiles": ("service/syncing/kinds/folder.py",),
    "limits": ("service/access/rates.py",),
    "lxml": (
        "service/importing/rows.py",
        "service/syncing/kinds/dav.py",
        *(
            f"service/importing/readers/{name}.py"
            for name in ("evernote", "office", "outlines", "statements")
        ),
    ),
    "requests": ("service/sources/remote/connections.py", "service/sources/remote/outbound.py"),
    "urllib3": ("service/sources/remote/connections.py",),
    "sqlite3": tuple(place for place in SQL if "postgres" not in place),
    "sqlite_utils": ("service/importing/readers/sqlite_tables.py",),
    "numpy": ("service/meaning/", "service/records/search/nearest.py"),
    "onnxruntime": ("service/meaning/model.py",),
    "sentencepiece": ("service/meaning/model.py",),
    "psycopg": ("service/records/postgres/",),
    "psycopg_pool": ("service/records/postgres/connections.py",),
    "tomlkit": ("service/clients/toml.py",),
    "rich": ("service/cli/",),
    "click": ("service/cli/", "service/__main__.py"),
    "jinja2": ("service/pages/",),
    "marshmallow": ("service/ports/", "service/operations/"),
    "apispec": ("service/operations/json_schema.py",),
    "cryptography": ("service/keys.py",),
    "os.environ": ("service/settings/__init__.py",),
    "os.getenv": ("service/settings/__init__.py",),
    # A progress bar counts seconds for a person, the log those of a request, and windows of rates
    # are those of a storage that others share; every deadline is `Deadline`.
    "time": (
        *(
            "evidence/work.py",
            "service/cli/output.py",
            "service/running/hooks.py",
            "service/access/rates.py",
            "service/running/turns.py",
        ),
    ),
}
