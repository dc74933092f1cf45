"""Guidance: knowledge from outside a study, and how far a search follows it."""
