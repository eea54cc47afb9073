"""The pages of what rules the agent: its prompt, and the runtime files that the prompt is made of."""
