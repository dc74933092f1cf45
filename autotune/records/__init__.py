"""Records: the frozen values that storage holds, and that every room above reads."""
