"""The owner's three files: what their lines mean, and what falls due by them."""
