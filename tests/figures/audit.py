"""`python -m tests.figures.audit`: what Rung depends on, and whether something is known against it.

It checks that every requirement is pinned with its hashes and that every licence is one of those
below, and writes a CycloneDX bill of materials to var/sbom.json. Unless `--offline`, pip-audit asks
for known vulnerabilities; `EXCEPTIONS` are those that are accepted, each with a reason. A package
of which no source of advisories knows anything is not checked.
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
#: The exit status if nothing is wrong, but not everything could be checked.
NOT_CHECKED: Final = 3
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
    """Asks for known vulnerabilities; 0 if every package was checked and has none.

    `NOT_CHECKED` if no source of advisories answered for a package.
    """
    accepted = [word for id in EXCEPTIONS for word in ("--ignore-vuln", id)]
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "-f", "json"]
    done = subprocess.run([*command, "-r", str(LOCK), *accepted], capture_output=True, check=False)
    if not done.stdout:
        print(done.stderr.decode())
    return verdict(orjson.loads(done.stdout)["dependencies"] if done.stdout else [])


def verdict(packages: list[dict[str, Any]]) -> int:
    """Prints what pip-audit reports of the packages of the lock; returns the exit status."""
    total = len(pinned(LOCK.read_text(encoding="utf-8")))
    checked = [package for package in packages if "vulns" in package]
    advisories = [(package, advisory) for package in checked for advisory in package["vulns"]]
    for package, advisory in advisories:
        versions = advisory.get("fix_versions")
        print(f"{package['name']} {package['version']}: {advisory['id']} {versions}")
    print(f"count checked for vulnerabilities={len(checked)}")
    print(f"count not checked={total - len(checked)}")
    if advisories:
        return 1
    if len(checked) < total:
        print(
            f"not checked: no source of advisories answered for {total - len(checked)} of {total} "
            "packages. Run this where pip-audit reaches pypi.org."
        )
        return NOT_CHECKED
    return 0


if __name__ == "__main__":
    sys.exit(main())
