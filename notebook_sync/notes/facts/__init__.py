"""Facts: short statements that count for more when they are used and fade when they are not."""
