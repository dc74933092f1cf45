"""Measurement of other load on a machine while a job runs."""
