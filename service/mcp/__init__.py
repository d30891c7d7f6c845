"""The core of the MCP protocol. Only one module, the blueprint, uses a framework."""
