"""Results: a study's summary, its cost, its Pareto front, and its export."""
