"""What else a machine did while a job ran."""
