"""Meters: what a run used of its cards, and the energy of its node, as far as the machine reports it.

The supervisor of a job imports these modules and is started by path, so they use the standard library only and relative
imports.
"""
