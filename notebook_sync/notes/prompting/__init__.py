"""What of the notebook the system prompt shows."""
