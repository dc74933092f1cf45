"""Coordination: what one session holds: its runs, their leases, and its resources."""
