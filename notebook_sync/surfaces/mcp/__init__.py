"""MCP: tools, one prompt and resources of a notebook, over stdio and streamable HTTP."""
