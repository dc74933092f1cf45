"""The language of rules and quantities: parsing, checking, and evaluation over columns."""
