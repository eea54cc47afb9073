"""The engine that brings the index to what the files say, and follows them."""
