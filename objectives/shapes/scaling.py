"""Strong scaling: the shape of any program that divides a problem over ranks and threads.

The work is divided (Amdahl, AFIPS 1967), except what every rank repeats, what runs outside of threads and what runs
once. The cores of a node share its memory, and communication grows with the ranks (Hockney, Parallel Computing 20,
1994).
"""

from objectives.shapes.shape import Shape, Term

# Names that no parameter can have.
_RANKS, _THREADS, _NODES = "_ranks", "_threads", "_nodes"

# Shares of the time on one core. They are rough, as the doubts say: what matters is what each term grows with.
_COMPUTING = 1.0
_SURE, _ROUGH, _VAGUE = 0.15, 0.8, 1.2
# What messages cost beside the work differs most: a larger problem has more work for each message.
_UNKNOWN = 2.0


def strong_scaling(ranks: str | None, threads: str | None, nodes: str | None = None) -> Shape:
    """Return the shape of a program by its ranks, and its threads for each rank.

    The amount of work is unknown: the shape predicts which configuration is faster and by how much, but not its time.

    Args:
        ranks: An expression of the study's space; None: one rank.
        threads: An expression of the study's space; None: one thread.
        nodes: An expression of the study's space; None: as few nodes as have the cores.
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
            Term("collective messages", f"log2({_RANKS})", 2e-5, _UNKNOWN),
            Term("messages", f"{_RANKS} - 1", 2e-6, _UNKNOWN),
            Term("collective messages between nodes", f"log2({_RANKS}) if {_NODES} > 1 else 0", 3e-5, _UNKNOWN),
            Term("further nodes", f"{_NODES} - 1", 2e-5, _UNKNOWN),
        ]
    counts = {_RANKS: ranks, _THREADS: threads, _NODES: nodes or fewest}
    return Shape(tuple(terms), counts={name: text for name, text in counts.items() if text is not None})
