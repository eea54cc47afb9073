"""The prompt assembler: Markdown files in, one system prompt out, exact to the token."""
