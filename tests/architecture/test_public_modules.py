"""Code outside a package imports its public modules."""

from collections.abc import Iterator

from service.importing.formats import FORMATS
from tests.architecture.sources import PACKAGES, ROOT, files, imports, inside

#: What each package offers to code outside it. An empty name is the package's `__init__`.
PUBLIC: dict[str, tuple[str, ...]] = {
    "service.records.sqlite": (),
    "service.records.postgres": (),
    "service.records.engine": ("health", "scopes", "vectors"),
    "service.records.writing": ("", "arrivals", "derived", "ingest", "streams"),
    "service.records": (
        *("copying", "freshness", "intake", "near", "opening"),
        *("overview", "sidecar", "sql", "store", "stream_changes"),
    ),
    "service.access": (
        *(
            "activity",
            "coverage",
            "entries",
            "grants",
            "guard",
            "issuers",
            "owner",
            "packages",
            "port",
        ),
        *("rates", "registry", "sidecar", "signins", "tables", "tokens"),
    ),
    "service.importing.process": ("guard", "parsing"),
    "service.importing": (
        *("finding", "formats", "importer", "inference", "plan", "run", "source", "tree"),
    ),
    "service.syncing.kinds": (),
    "service.syncing": ("connector", "owner_file", "round", "syncing"),
    "service.papers": ("snapshot_file", "snapshot_library", "swap"),
    "service.sources.remote": (
        *("health_check", "origin", "outbound", "remote_authority", "server"),
    ),
    "service.sources.package": ("",),
    "service.pdpp": ("brackets", "decode", "encode"),
    "service.ports": ("", "papers", "request", "types"),
    "service.operations": (
        *("", "arguments", "base", "bodies", "json_schema", "listings"),
        *("paper_links", "papers", "read_record_field", "records"),
    ),
    "service.mcp": (
        *("answer_cache", "blueprint", "faults", "stdio"),
        *("surface", "validation", "versions"),
    ),
    "service.rest": ("blueprint", "metadata", "web"),
    "service.openapi": ("",),
    "service.pages": ("blueprint", "layout", "session_path"),
    "service.signin": ("blueprint",),
    "service.demo": ("fill", "papers"),
    "service.doctor": ("findings", "local", "remote", "sources"),
    "service.clients": ("servers", "table", "toml", "writing"),
    "service.running": ("hooks", "metrics", "readiness"),
    "service.webhook": ("delivery",),
    "service.settings": ("", "explanation", "parsing"),
}

#: Packages whose parts use each other as `FLOORS` allows.
HOUSES = ("service.records", "service.importing", "service.syncing")


def uses() -> Iterator[tuple[str, str, str]]:
    """(file, package, module of it) of every import of a package's module from outside."""
    for path in files("service"):
        importer = ".".join(path.with_suffix("").parts)
        for name in imports(path):
            package = next((package for package in PUBLIC if inside(name, package)), None)
            if package and not inside(importer, _house(package)):
                yield path.as_posix(), package, module_of(package, name)


def _house(package: str) -> str:
    """The package whose modules may use every module of a package."""
    houses = (house for house in HOUSES if inside(package, house))
    return next(houses, package)


def module_of(package: str, name: str) -> str:
    """The module or inner package that holds an imported name; empty for `__init__`."""
    first = name.removeprefix(package).strip(".").split(".")[0]
    place = ROOT.joinpath(*package.split("."), first)
    return first if first and (place.is_dir() or place.with_suffix(".py").exists()) else ""


def test_code_outside_a_package_imports_its_public_modules() -> None:
    wrong = [
        f"{file} imports {package}.{module}"
        for file, package, module in uses()
        if module not in PUBLIC[package]
    ]
    assert wrong == [], "Use a public module of the package, or add one to PUBLIC."


def test_every_public_module_is_used_outside_its_package() -> None:
    used = {(package, module) for _, package, module in uses()}
    named = {(package, module) for package, modules in PUBLIC.items() for module in modules}
    assert named - used == set(), "Take these off PUBLIC."


def test_an_import_format_is_one_module_and_one_row() -> None:
    readers = {format.read.__module__ for format in FORMATS.values()}
    users = {
        path.as_posix()
        for path in files(*PACKAGES)
        for module in imports(path)
        if any(inside(module, reader) for reader in readers)
    }
    assert users == {"service/importing/formats.py"}
