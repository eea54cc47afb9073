"""The pages on which notes are found and read."""
