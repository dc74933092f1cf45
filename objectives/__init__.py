"""Objectives: the programs that studies run, and how their output is read."""
