"""Tuning: a session from opening to verdict, and the loop that proposes and starts runs."""
