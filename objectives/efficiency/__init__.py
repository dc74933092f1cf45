"""How well an MPI program uses its ranks: measured of any program, by a library that its processes load."""
