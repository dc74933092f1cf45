"""Strong scaling: the shape of every program that divides a problem over ranks and threads.

The work is divided (Amdahl, AFIPS 1967), up to what every rank does for itself, what runs in no thread, and what runs
once; cores of a node share its memory, and communication grows with ranks (Hockney, Parallel Computing 20, 1994).
"""

from objectives.shapes.shape import Shape, Term

# Names that no parameter has.
_RANKS, _THREADS, _NODES = "_ranks", "_threads", "_nodes"

# Shares of the time on one core. They are rough, as the doubts say: what counts is which term grows with what.
_COMPUTING = 1.0
_SURE, _ROUGH, _VAGUE = 0.15, 0.8, 1.2


def strong_scaling(ranks: str | None, threads: str | None, nodes: str | None = None) -> Shape:
    """Return the shape of a program with so many ranks and threads a rank, expressions of a study's space; None: one.

    Without an expression for its `nodes` it has as few as have its cores.

    The work is not known: the shape says which configuration is faster, and by how much, but not how long one takes.
    """
    cores = " * ".join(name for name, text in ((_RANKS, ranks), (_THREADS, threads)) if text is not None) or "1"
    fewest = f"(ceil(({cores}) / cores_per_node) if is_set(cores_per_node) else 1)"
    terms = [
        Term("computing", f"1 / ({cores})", _COMPUTING, _SURE),
        Term("serial part", "1", 0.003, _ROUGH),
        Term("memory of the nodes", f"1 / {_NODES}", 0.007, _ROUGH),
    ]
    if threads is not None:
        terms += [
            Term("outside of threads", f"1 / {_RANKS}" if ranks is not None else "1", 0.01, _ROUGH),
            Term("starting threads", f"{_THREADS} - 1", 2e-5, _VAGUE),
        ]
    if ranks is not None:
        terms += [
            Term("surfaces between ranks", f"(1 / {_RANKS} ** (2 / 3) if {_RANKS} > 1 else 0)", 0.007, _ROUGH),
            Term("collective messages", f"log2({_RANKS})", 2e-4, _VAGUE),
            Term("messages", f"{_RANKS} - 1", 2e-5, _VAGUE),
            Term("collective messages between nodes", f"log2({_RANKS}) if {_NODES} > 1 else 0", 3e-4, _VAGUE),
            Term("further nodes", f"{_NODES} - 1", 2e-4, _VAGUE),
        ]
    counts = {_RANKS: ranks, _THREADS: threads, _NODES: nodes or fewest}
    return Shape(tuple(terms), counts={name: text for name, text in counts.items() if text is not None})
