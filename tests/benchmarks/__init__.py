"""How fast and how large, beside the limit of the machine at hand: `python -m tests.benchmarks`."""
