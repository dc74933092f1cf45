"""Comparisons in fresh runs: the verdict, ablation, inputs of weight 0, sweeps, sizing and checks of a verdict."""
