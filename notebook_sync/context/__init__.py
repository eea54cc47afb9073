"""What a task needs to know: the brief that is compiled for it, and what a reasoner makes of that."""
