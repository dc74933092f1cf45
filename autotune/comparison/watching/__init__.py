"""Watch a verdict: check weeks later with a few fresh pairs of runs whether it still holds."""
