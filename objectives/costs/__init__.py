"""What run times are made of, before any measurement."""
