"""Readers of measurements made elsewhere, and the data set of all measurements."""
