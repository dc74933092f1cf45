"""Search for a decision table: one model of all cells, and the run that is expected to gain most for the table."""
