"""Verdicts: how far they can be trusted and what they cost, on quiet and shared machines and over several nodes."""
