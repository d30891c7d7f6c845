"""TOML tables: added at the end, taken out alone, or not at all."""

import tomllib

import pytest

from service.clients.editing import Unfit
from service.clients.toml import lookup, put, take

PATH = ("mcp_servers", "rung")
ENTRY = {"url": "https://rung.example.com/mcp", "bearer_token_env_var": "RUNG_TOKEN"}
TEXTS = {
    "empty": "",
    "comment": "# mine\n",
    "no last newline": 'model = "a"',
    "crlf": 'model = "a"\r\n\r\n[mcp_servers.a]\r\nurl = "x"\r\n',
    "parts apart": '[mcp_servers.a]\nurl = "x"\n[tools]\nweb = true\n[mcp_servers.b]\nurl = "y"\n',
    "header of all": '[mcp_servers]\n\n[mcp_servers.a]\nurl = "x"\n',
    "in strings": 'notify = """\n[mcp_servers.rung]\nurl = "no"\n"""\n',
    "array of tables": "[[rules]]\nname = 'a'\n[[rules]]\nname = 'b'\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_table_is_added_after_everything_and_taken_out_alone(text: str) -> None:
    new = put(text, PATH, ENTRY)
    assert new.startswith(text) and lookup(new, PATH) == ENTRY
    assert ("\r\n" in new) == ("\r\n" in text)
    before = tomllib.loads(text)
    after = tomllib.loads(take(new, PATH))
    assert after == before or after == {**before, "mcp_servers": {}}
    assert "".join(take(new, PATH).split()) == "".join(text.split())


def test_a_table_with_parts_is_taken_out_and_replaced_whole() -> None:
    text = "[mcp_servers.rung]\ncommand = 'x'\n[mcp_servers.rung.env]\nA = 'b'\n\n"
    text += "[tools]\nweb = true\n"
    assert tomllib.loads(take(text, PATH)) == {"tools": {"web": True}}
    assert tomllib.loads(put(text, PATH, ENTRY)) == {
        "tools": {"web": True},
        "mcp_servers": {"rung": ENTRY},
    }


def test_a_table_with_a_table_in_it_stays_one() -> None:
    entry = {"command": "x", "args": ["a b", 'c"d'], "env": {"RUNG_TOKEN": "t"}}
    assert lookup(put("", PATH, entry), PATH) == entry
    assert lookup(put("", ("mcp_servers", "odd name"), entry), ("mcp_servers", "odd name")) == entry


@pytest.mark.parametrize("text", ["mcp_servers = {}\n", "mcp_servers = 1\n"])
def test_what_cannot_take_a_table_is_refused(text: str) -> None:
    with pytest.raises(Unfit, match="mcp_servers"):
        put(text, PATH, ENTRY)
