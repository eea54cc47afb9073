"""Finding notes by words, by meaning, or both: one tokenizer, one ranking."""
