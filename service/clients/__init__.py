"""MCP clients: how each is told the address of a service and the bearer it sends.

`CLIENTS` are in the order they are shown, `RECOMMENDED` comes before all of them: the address of
`/mcp` and a bearer in a header, which every client that speaks HTTP takes in some spelling.
`client.snippets(url, token)` says what to paste; a token of "" leaves the header out, and
`PLACEHOLDER` stands for one that is not shown.
"""

from service.clients.client import PLACEHOLDER, TOKEN_VARIABLE, Client, Config, Snippet, endpoint
from service.clients.table import CLIENTS, RECOMMENDED, named

__all__ = [
    "CLIENTS",
    "PLACEHOLDER",
    "RECOMMENDED",
    "TOKEN_VARIABLE",
    "Client",
    "Config",
    "Snippet",
    "endpoint",
    "named",
]
