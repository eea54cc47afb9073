"""What can be done with a notebook, each operation declared once: Python, command line, HTTP, MCP and tools follow."""
