"""How programs pace: recorded block by block of their steps, and replayed."""
