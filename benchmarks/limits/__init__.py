"""The search under a limit, beside peers that know constraints."""
