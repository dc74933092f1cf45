"""Meters: what a run used of its cards, and the energy of its node, as far as the machine tells it.

Imported by the supervisor of a job, which is started by path: these modules use the standard library only, and name one
another relatively.
"""
