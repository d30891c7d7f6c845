"""The evidence benchmark: what proven answers cost an agent that reads text, on any MCP server."""
