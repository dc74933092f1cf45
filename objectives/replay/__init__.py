"""Replay: recorded measurements as an objective, with simulated time."""
