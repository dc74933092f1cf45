"""The JSON values that the service reads and returns."""
