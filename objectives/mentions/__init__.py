"""What stands in a study file for values of its space: placeholders, counts, expressions."""
