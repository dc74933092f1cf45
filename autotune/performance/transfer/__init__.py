"""Transfer: which configurations should be best on a machine, by what others gave on the same space."""
