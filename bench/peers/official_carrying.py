"""The official `mcp` SDK in front of Rung's own search, served as `official` is."""

import sys

from bench.peers import carried, uvicorned
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult

server = MCPServer("official")


@server.tool()
async def search(query: str, context: Context, limit: int = 10) -> CallToolResult:
    """Search records."""
    return CallToolResult.model_validate(carried.answer(query, limit, context.headers))


app = server.streamable_http_app(json_response=True, stateless_http=True)

if __name__ == "__main__":
    uvicorned.serve(app, int(sys.argv[1]))
