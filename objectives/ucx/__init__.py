"""UCX, the communication library: benchmarks between processes as an objective."""
