"""A tiled loop nest on eight machines: one processor under four instruction sets, other flags, and one or two cores."""
