"""Scheduling: which run comes next: repeats, Hyperband's rungs, and when more search no longer pays."""
