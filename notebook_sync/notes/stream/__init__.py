"""The daily stream, and going back to a checkpoint of it."""
