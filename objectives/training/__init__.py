"""Trainings as objectives: any script, and two programs that ship."""
