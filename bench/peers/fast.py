"""fastmcp: stateless, JSON answers, under uvicorn."""

import sys
from typing import Any

from bench.peers import plain, uvicorned
from fastmcp import FastMCP

server = FastMCP("fast")


@server.tool
async def search(query: str, limit: int = 10) -> dict[str, Any]:
    """Search records."""
    return {"results": plain.search(query, limit)}


app = server.http_app(path="/mcp", json_response=True, stateless_http=True)

if __name__ == "__main__":
    uvicorned.serve(app, int(sys.argv[1]))
