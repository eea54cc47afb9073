"""What the notebook knows about one task, compiled into a brief without asking anybody."""
