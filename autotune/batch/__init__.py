"""Batch: job scripts, site files, and the allocation that this process runs in."""
