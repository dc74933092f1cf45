"""Nevergrad's optimisers; a proposal is replaced by the nearest valid configuration not evaluated yet."""

import warnings
from typing import Any

import nevergrad as ng
import numpy as np
from protocol import Oracle, serve


def search(oracle: Oracle, options: dict[str, Any], seed: int, budget: int) -> None:
    problem = oracle.problem
    kinds = [
        ng.p.TransitionChoice(range(size)) if ordered else ng.p.Choice(range(size))
        for size, ordered in zip(problem.sizes, problem.ordered, strict=True)
    ]
    space = ng.p.Tuple(*kinds)
    space.random_state = np.random.RandomState(seed)
    optimiser = ng.optimizers.registry[options["optimiser"]](parametrization=space, budget=budget)
    while True:
        proposal = optimiser.ask()
        chosen = oracle.nearest(proposal.value)
        value = oracle.evaluate(chosen)
        told = oracle.worst if value is None else value
        if told is not None:
            optimiser.tell(proposal if chosen == proposal.value else space.spawn_child(chosen), told)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(search)
