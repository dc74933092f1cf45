"""Readers of measurements that were made elsewhere."""
