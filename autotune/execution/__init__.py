"""Execution: how one run is made: cores, time limits, Ray, batch jobs, simulation."""
