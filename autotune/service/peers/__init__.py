"""Peers: who connects to the service, and who is let in at the door."""
