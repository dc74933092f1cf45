"""Guidance: what is known before a study has measured anything, and how far a search follows it."""
