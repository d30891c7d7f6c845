"""Configuration formats of MCP clients.

`table.CLIENTS` are in display order. `table.RECOMMENDED` comes before all of them: the address of
`/mcp` and a bearer in a header, which every HTTP client accepts in some format.
`client.snippets(url, token)` returns the text to paste; a token of "" omits the header, and
`table.PLACEHOLDER` replaces one that is not shown.
"""
