"""No text installs Rung by its name from an index, where a stranger may register the name."""

import re
from configparser import ConfigParser
from pathlib import Path

import pytest

from publish.identity import Identity
from service.extras import EXTRAS, install_command
from tests.architecture.sources import PACKAGES, ROOT, files, text

#: Files beside the packages. The changelog is left out: it describes earlier versions too.
ROOT_FILES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "Dockerfile", "Makefile", "app.json")
ENDINGS = (".md", ".py", ".toml", ".html", ".js", ".json", ".txt", ".example")
BY_NAME = re.compile(
    r"\brung\[[a-z]"
    r"|\b(pip3? install|pipx (install|run)|uv (pip install|tool (install|run)|add)|uvx)"
    r"( -\S+)* ['\"]?rung\b"
)


def test_no_text_installs_rung_by_name_while_the_name_is_a_placeholder() -> None:
    folders = ("docs", "examples", "model", "plugin", "publish", *PACKAGES)
    paths = [path for ending in ENDINGS for path in files(*folders, ending=ending)]
    named = [
        f"{path}: {match[0]}"
        for path in (*paths, *map(Path, ROOT_FILES), Path("rung.env.example"))
        for match in BY_NAME.finditer(re.sub(r"\s+", " ", text(path)))
    ]
    assert not Identity.read().placeholder or named == [], "use service.extras.install_command"


@pytest.mark.parametrize(
    "command",
    ["pip install 'rung[redis]'", "pip install -U rung", "uvx rung demo", "install rung[xlsx]"],
)
def test_a_command_that_installs_by_name_is_recognized(command: str) -> None:
    assert BY_NAME.search(command)


def test_an_extra_is_installed_by_the_packages_that_setup_cfg_lists() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    for extra in EXTRAS:
        packages = setup["options.extras_require"][extra].split()
        assert install_command(extra) == " ".join(["pip install", *map("'{}'".format, packages)])
