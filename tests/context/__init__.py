"""Briefs and syntheses."""
