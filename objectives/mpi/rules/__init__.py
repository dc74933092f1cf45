"""Decision tables as files that MPI libraries read."""
