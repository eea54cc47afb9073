"""How notes are changed by tools: through one door, undone, and told."""
