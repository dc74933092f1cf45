"""Merging several storages into one."""
