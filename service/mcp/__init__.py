"""The core of MCP. Only one module, the blueprint, uses a web framework."""
