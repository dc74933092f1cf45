"""Test predictions for machines and workloads with few or no runs, and their benefit for studies."""
