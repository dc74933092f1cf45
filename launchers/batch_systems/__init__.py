"""The batch systems, each in one module of pure text functions."""
