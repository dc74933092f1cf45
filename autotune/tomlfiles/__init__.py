"""TOML files: reading and validating them, finding the lines of keys, and writing them."""
