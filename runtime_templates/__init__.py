"""The files that a new notebook starts with, and the directive of the prompt. Data only."""
