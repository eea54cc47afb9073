"""Each guarantee taken out of the code in turn: a test must notice, or it does not guard what it is there for."""
