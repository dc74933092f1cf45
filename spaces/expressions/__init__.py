"""The language of rules and quantities: read, checked, and computed over columns."""
