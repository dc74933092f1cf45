"""autotune: finds the fastest valid configuration of a program on a machine, and says how sure it is."""

__version__ = "0.1.0"
