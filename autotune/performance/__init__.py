"""The performance model: what was measured on every machine, and what it says of machines where nothing has run."""
