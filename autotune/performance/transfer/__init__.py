"""Transfer: which configurations should be best on a machine, by measurements of the same space on others."""
