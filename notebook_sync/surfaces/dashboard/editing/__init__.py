"""The pages on which notes are made, changed, brought back and taken away."""
