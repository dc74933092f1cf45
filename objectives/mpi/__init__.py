"""Collective operations of MPI: their algorithms by collective, number of ranks and message size."""
