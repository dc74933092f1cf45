"""The parsers that `python -m benchmarks.fuzz` throws bytes at."""
