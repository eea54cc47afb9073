"""The picture of memories and of how they bear on each other."""
