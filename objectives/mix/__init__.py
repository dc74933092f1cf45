"""A mix: several inputs of a program as one objective."""
