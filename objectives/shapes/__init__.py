"""Shapes: the terms whose sum a run time is, before anything was measured."""
