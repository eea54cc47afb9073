"""The whole notebook in one file, and back."""
