"""Statistics: repeated runs, races between configurations, standings, and the verdict's interval."""
