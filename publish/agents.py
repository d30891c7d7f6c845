"""The skill, and the folder that agents install as a plugin, from one source."""

import json
from pathlib import Path
from typing import Any, Final

from evidence.limits import CONTRACT
from evidence.text import json_line
from publish import registry
from publish.identity import ROOT, Identity
from service.operations import OPERATIONS

TEMPLATE: Final = Path(__file__).with_name("skill.md")
#: A server on the person's machine, unless the environment names another.
_URL = "${RUNG_URL:-http://127.0.0.1:8000}/mcp"


def skill() -> str:
    """`SKILL.md`: which tool when, how to widen a search, and how to cite."""
    rows = [
        f"| `{operation.name}` | {operation.title} | `{json_line(operation.examples[0])}` |"
        for operation in OPERATIONS
    ]
    table = "\n".join(("| tool | what it does | example |", "|---|---|---|", *rows))
    text = TEMPLATE.read_text(encoding="utf-8")
    return text.replace("{tools}", table).replace("{window}", f"{CONTRACT.window_chars_max:,}")


def written(identity: Identity) -> dict[str, str]:
    """The text of each file that is generated and checked in, by its path."""
    about = {
        "name": "rung",
        "version": identity.version,
        "description": registry.DESCRIPTION,
    }
    header = {"Authorization": "Bearer ${RUNG_TOKEN}"}
    claude = {"rung": {"type": "http", "url": _URL, "headers": header}}
    gemini = {
        "rung": {
            "httpUrl": "http://127.0.0.1:8000/mcp",
            "headers": {"Authorization": "Bearer $RUNG_TOKEN"},
        }
    }
    market = {
        "name": "rung",
        "owner": {"name": "The Rung authors"},
        "plugins": [{**about, "source": "./plugin"}],
    }
    return {
        "server.json": _json(registry.server(identity)),
        ".claude-plugin/marketplace.json": _json(market),
        "plugin/.claude-plugin/plugin.json": _json(
            {**about, "license": "Apache-2.0", "mcpServers": claude}
        ),
        "plugin/gemini-extension.json": _json({**about, "mcpServers": gemini}),
        "plugin/skills/rung/SKILL.md": skill(),
    }


def write(identity: Identity, root: Path = ROOT) -> None:
    """Writes these files below `root`."""
    for name, text in written(identity).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def _json(body: Any) -> str:
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"
