"""Regression: features, design matrices and the models that predictions are composed of."""
