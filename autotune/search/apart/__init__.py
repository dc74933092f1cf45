"""The model in a process of its own, for a session that many programs ask."""
