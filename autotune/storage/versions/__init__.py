"""From one version of autotune's tables to the next: a module for each version."""
