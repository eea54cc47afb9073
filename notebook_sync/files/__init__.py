"""Everything that touches the disk: reading notes safely, saying what they mean, and asking git."""
