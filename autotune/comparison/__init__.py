"""Comparison: the winner against the default: the verdict, ablation, other inputs, sweeps."""
