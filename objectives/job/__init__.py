"""Metrics of whole jobs, beside those that programs tell."""
