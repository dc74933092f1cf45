"""Shapes: what a run time is a sum of, before anything was measured."""
