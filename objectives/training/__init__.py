"""Training scripts as objectives."""
