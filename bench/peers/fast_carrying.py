"""fastmcp in front of Rung's own search, served as `fast` is."""

import sys

from bench.peers import carried, uvicorned
from fastmcp import FastMCP
from fastmcp.server.dependencies import get_http_headers
from fastmcp.tools import ToolResult
from mcp_types import TextContent

server = FastMCP("fast")


@server.tool
async def search(query: str, limit: int = 10) -> ToolResult:
    """Search records."""
    found = carried.answer(query, limit, get_http_headers(include={"authorization"}))
    blocks = [TextContent(**block) for block in found["content"]]
    return ToolResult(content=blocks, structured_content=found["structuredContent"])


app = server.http_app(path="/mcp", json_response=True, stateless_http=True)

if __name__ == "__main__":
    uvicorned.serve(app, int(sys.argv[1]))
