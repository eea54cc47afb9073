"""The index (SQLite) and the two mirrors that are fed from it (MongoDB, Redis)."""
