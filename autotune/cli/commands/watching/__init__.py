"""The command that watches a winner after its study."""
