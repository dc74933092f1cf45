"""Searching for a decision table: one model over all cells, and the run that brings the table most."""
