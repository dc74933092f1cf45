"""The commands on suites."""
