"""The dashboard: pages for the notebook's owner, made by the server from the same use cases that every other door has.

A page decides nothing: who may do what, and what becomes of the files, is decided behind the notebook's face.
"""
