"""What is special about SQLite."""
