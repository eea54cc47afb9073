"""HTTP: every operation with a route, tools, events, metrics; behind one guard."""
