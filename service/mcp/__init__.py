"""The MCP protocol core, without a framework except for one blueprint."""
