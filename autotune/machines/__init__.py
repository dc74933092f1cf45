"""Machines: what their hardware and software offer, as facts; described by hand, detected, and measured."""
