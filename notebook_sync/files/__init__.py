"""Everything that touches the notebook's folder: reading, parsing, saving, editing, history."""
