"""The forms in which a study file mentions values of its space: placeholders, counts, expressions."""
