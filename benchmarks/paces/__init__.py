"""Paces of programs (time per block of steps): recorded from real runs, and replayed in simulated studies."""
