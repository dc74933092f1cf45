"""Coordination: what one session holds: its runs, its resources, and the other coordinators of its study."""
