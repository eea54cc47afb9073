"""The files a new notebook starts with. Data only."""
