"""The dashboard: its login and pages as plain HTTP, and in a real browser."""
