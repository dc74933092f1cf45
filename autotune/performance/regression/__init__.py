"""Regression: features, design matrices, and the models that a prediction combines."""
