"""`python -m tests.figures.audit`: what Rung depends on, and whether something is known against it.

It checks that every requirement is pinned with its hashes and that every licence is one of those
below, and writes a CycloneDX bill of materials to var/sbom.json. Unless `--offline`, pip-audit asks
for known vulnerabilities; `EXCEPTIONS` are those that are accepted, each with a reason.
"""

import argparse
import re
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any, Final

import orjson

ROOT = Path(__file__).resolve().parents[2]
LOCK, BILL = ROOT / "requirements.lock", ROOT / "var" / "sbom.json"
#: Accepted vulnerabilities: the id, and why it does no harm here.
EXCEPTIONS: Final[dict[str, str]] = {}
LICENCES: Final = re.compile(
    r"MIT|BSD|Apache|PSF|Python Software|ISC|MPL|Mozilla|LGPL|Lesser|Zlib|Unlicense|HPND|0BSD"
    r"|Public Domain",
    re.I,
)
_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.M)


def main() -> int:
    """0 if nothing is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--offline", action="store_true")
    asked = parser.parse_args()
    wrong = unpinned(LOCK.read_text(encoding="utf-8"))
    parts = [part(name) for name, _ in pinned(LOCK.read_text(encoding="utf-8"))]
    wrong += [
        f"{one['name']}: the licence {one['licence']!r} is not listed"
        for one in parts
        if not LICENCES.search(one["licence"])
    ]
    BILL.parent.mkdir(exist_ok=True)
    BILL.write_bytes(orjson.dumps(bill(parts), option=orjson.OPT_INDENT_2))
    print(f"count packages={len(parts)}")
    for line in wrong:
        print(line)
    return int(bool(wrong)) or (0 if asked.offline else vulnerabilities())


def pinned(lock: str) -> list[tuple[str, str]]:
    """(name, version) of the requirements of a file, names in lower case."""
    return [(name.lower().replace("_", "-"), version) for name, version in _PINNED.findall(lock)]


def unpinned(lock: str) -> list[str]:
    """Requirements of a lock file without a hash."""
    entries = re.split(r"\n(?=[A-Za-z])", lock)
    return [
        f"{one[:40]!r} has no hash" for one in entries if _PINNED.match(one) and "--hash" not in one
    ]


def part(name: str) -> dict[str, str]:
    """Name, version and licence of an installed package."""
    found = distribution(name)
    return {"name": name, "version": found.version, "licence": _licence(found)}


def _licence(found: Distribution) -> str:
    known = found.metadata
    classifiers = [one for one in known.get_all("Classifier", []) if one.startswith("License ::")]
    return known.get("License-Expression") or "; ".join(classifiers) or known.get("License") or ""


def bill(parts: list[dict[str, str]]) -> dict[str, Any]:
    """A CycloneDX document."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": [
            {
                "type": "library",
                "name": one["name"],
                "version": one["version"],
                "purl": f"pkg:pypi/{one['name'].lower()}@{one['version']}",
                "licenses": [{"license": {"name": one["licence"][:200]}}],
            }
            for one in parts
        ],
    }


def vulnerabilities() -> int:
    """Asks for known vulnerabilities; 0 if none is found. Packages nobody knows are counted."""
    accepted = [word for id in EXCEPTIONS for word in ("--ignore-vuln", id)]
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "-f", "json"]
    done = subprocess.run(
        [*command, "-r", str(LOCK), *accepted], stdout=subprocess.PIPE, check=False
    )
    known = orjson.loads(done.stdout)["dependencies"] if done.stdout else []
    for one in known:
        for found in one.get("vulns", ()):
            print(f"{one['name']} {one['version']}: {found['id']} {found.get('fix_versions')}")
    if not any("vulns" in one for one in known):
        print(
            "Nothing was checked for vulnerabilities: pip-audit reached no source that knows these."
        )
    print(f"count checked for vulnerabilities={sum('vulns' in one for one in known)}")
    print(f"count not known to the source={sum('vulns' not in one for one in known)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
