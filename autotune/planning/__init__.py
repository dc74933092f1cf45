"""Planning: turn a study file into a plan for a machine, check a study file, and write a first one."""
