"""Peers: who connects to the service."""
