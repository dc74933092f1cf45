"""Commands about what a run is given."""
