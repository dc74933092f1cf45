"""The variables of UCX as a space, from the output of the installed UCX."""
