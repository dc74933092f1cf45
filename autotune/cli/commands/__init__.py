"""The commands, a module each; several that belong together share one."""
