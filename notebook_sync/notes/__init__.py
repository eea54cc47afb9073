"""Who lives in a notebook: what each kind of note means beyond being Markdown."""
