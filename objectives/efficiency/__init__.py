"""How well an MPI program uses its ranks, measured for any program by a library that its processes load."""
