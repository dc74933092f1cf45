"""Display: what a session shows while it runs, on a terminal, in a log or in a status file."""
