"""MCP clients: how each is configured with an address and a bearer token.

`table.CLIENTS` are in the order they are shown, `table.RECOMMENDED` comes before all of them: the
address of `/mcp` and a bearer in a header, which every client that speaks HTTP takes in some
spelling. `client.snippets(url, token)` says what to paste; a token of "" leaves the header out, and
`client.PLACEHOLDER` stands for one that is not shown.
"""
