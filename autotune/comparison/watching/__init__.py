"""Watching: whether a verdict still holds, weeks later, by a few fresh pairs of runs at a time."""
