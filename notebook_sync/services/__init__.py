"""The operations of a notebook, in groups. Each is a typed method with a docstring."""
