"""The official `mcp` SDK: its server class, stateless, JSON answers, under uvicorn."""

import sys
from typing import Any

from bench.peers import plain, uvicorned
from mcp.server.mcpserver import MCPServer

server = MCPServer("official")


@server.tool()
async def search(query: str, limit: int = 10) -> dict[str, Any]:
    """Search records."""
    return {"results": plain.search(query, limit)}


app = server.streamable_http_app(json_response=True, stateless_http=True)

if __name__ == "__main__":
    uvicorned.serve(app, int(sys.argv[1]))
