"""What other distributions add."""
