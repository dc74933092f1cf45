"""Right-sizing: how many nodes, ranks and threads a run should have, for a deadline or a budget."""
