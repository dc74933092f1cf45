"""MPI libraries: collective operations as an objective, and rules files for them."""
