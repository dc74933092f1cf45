"""The variables of UCX as a space, from what the installed UCX says of itself."""
