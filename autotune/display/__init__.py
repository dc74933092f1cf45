"""Display: the output of a session while it runs, on a terminal, in a log or in a status file."""
