"""TOML files: the lines of keys, checks with their problems, and writing."""
