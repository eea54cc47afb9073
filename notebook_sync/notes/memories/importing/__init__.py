"""Bringing in the memories that another program exported, and losing none."""
