"""Replay: a table of measured configurations as an objective. Nothing is run; what was recorded is told again."""
