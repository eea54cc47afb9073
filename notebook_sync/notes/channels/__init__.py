"""Agents' private notes, in channels."""
