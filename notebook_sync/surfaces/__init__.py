"""Command line, HTTP, MCP and tools for models: each translates, and adds nothing else."""
