"""DeepHyper's centralised Bayesian optimisation (CBO); a proposal is replaced by the nearest valid configuration."""

import logging
import tempfile
import warnings
from typing import Any

from deephyper.hpo import CBO, HpProblem
from protocol import Oracle, serve


def search(oracle: Oracle, options: dict[str, Any], seed: int, budget: int) -> None:
    del options, budget  # it plans without one
    problem = oracle.problem
    space = HpProblem()
    varied = [k for k, size in enumerate(problem.sizes) if size > 1]
    for k in varied:
        last = problem.sizes[k] - 1
        space.add_hyperparameter((0, last) if problem.ordered[k] else list(range(last + 1)), problem.names[k])
    with tempfile.TemporaryDirectory() as folder:
        optimiser = CBO(space, random_state=seed, log_dir=folder, verbose=0)
        while True:
            [proposal] = optimiser.ask(1)
            row = [0] * len(problem.names)
            for k in varied:
                row[k] = int(proposal[problem.names[k]])
            chosen = oracle.nearest(row)
            value = oracle.evaluate(chosen)
            told = oracle.worst if value is None else value
            if told is not None:
                # It maximises.
                optimiser.tell([({problem.names[k]: chosen[k] for k in varied}, -told)])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    serve(search)
