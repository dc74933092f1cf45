"""What is run and how its output is read."""
