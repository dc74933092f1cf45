"""The commands: one module each, except that related commands share a module."""
