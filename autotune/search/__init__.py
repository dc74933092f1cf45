"""Where Optuna lives: the sampler over the valid set, and the studies in storage."""
