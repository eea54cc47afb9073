"""The pages of what is remembered: facts, memories, agents' own notes, the stream of a day, and checkpoints."""
