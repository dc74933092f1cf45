"""Files by which an MPI library follows a table of decisions about its collective operations."""
