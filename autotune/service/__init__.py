"""The service: studies of a storage, for browsers and programs."""
