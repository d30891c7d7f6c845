"""The name of Rung is one setting, and nothing is published under a placeholder."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from publish import __main__ as command
from publish.identity import FILE, Identity
from publish.readme import index_readme
from tests.helpers.server import ROOT

OWN = Identity("io.github.someone/rung-records", "https://github.com/someone/rung", "1.2.3")


def test_publishing_is_refused_while_the_name_is_a_placeholder(tmp_path: Path) -> None:
    assert Identity.read().placeholder and not OWN.placeholder
    refused = CliRunner().invoke(command.main, ["build", "--publish", "--out", str(tmp_path)])
    assert refused.exit_code == 1 and f"publish/{FILE.name}" in refused.output
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_registry_accepts_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "identity.toml"
    file.write_text('identity = "rung"\nrepository = "https://example.com"\n')
    with pytest.raises(ValueError, match="a slash and a name"):
        Identity.read(file)


def test_links_and_pictures_of_the_index_page_are_absolute() -> None:
    page = (
        "See [grants](docs/grants.md#fields), ![a page](docs/images/read.png), [x](https://x.org)."
    )
    assert index_readme(page, OWN).splitlines() == [
        "See [grants](https://github.com/someone/rung/blob/v1.2.3/docs/grants.md#fields), "
        "![a page](https://github.com/someone/rung/raw/v1.2.3/docs/images/read.png), "
        "[x](https://x.org).",
        "<!--",
        "mcp-name: io.github.someone/rung-records",
        "-->",
    ]


def test_no_link_of_our_readme_stays_relative() -> None:
    page = index_readme((ROOT / "README.md").read_text(encoding="utf-8"), OWN)
    assert "](docs/" not in page and "](SECURITY" not in page and "](tests/" not in page
