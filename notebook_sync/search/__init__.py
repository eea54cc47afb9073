"""Search by meaning: what makes vectors of texts, where they are kept, and how their finds join those of words."""
