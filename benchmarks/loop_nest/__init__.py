"""A tiled loop nest on eight emulated machines: four instruction sets, other compiler flags, one or two cores."""
