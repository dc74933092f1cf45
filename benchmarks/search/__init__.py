"""The default sampler beside every serious peer, on measured tables: `python -m benchmarks.search --help`."""
