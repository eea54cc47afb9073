"""The services: operations on a notebook of real files."""
