"""Decisions: which setting is the best where, and the files that a program reads them from."""
