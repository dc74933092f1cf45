"""Planning: from a study file and a machine to a plan; checking a study file and writing the first one."""
