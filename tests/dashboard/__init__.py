"""The dashboard: what its pages say and do, asked in this process, and as people see it, in a real browser."""
