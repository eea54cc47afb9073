"""The command line: each command calls one operation and prints its result."""
