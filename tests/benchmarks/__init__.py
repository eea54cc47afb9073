"""How fast and how large, next to the limit of the same machine in the same run: `python -m tests.benchmarks`."""
