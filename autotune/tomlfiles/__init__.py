"""TOML files: where a key stands, what is wrong with it, and writing one."""
