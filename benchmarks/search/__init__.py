"""Compare the default sampler with its peers on measured tables: `python -m benchmarks.search --help`."""
