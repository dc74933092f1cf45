"""The program of the planning process: it receives a space, then orders, and answers each with a plan.

python -m autotune.search.plan_worker DESCRIPTOR
"""

import sys
from multiprocessing.connection import Connection

from autotune.search.batch_proposals import PlanOrder
from autotune.search.gp_sampler import ValidSetSampler


def main(descriptor: int) -> None:
    """Answer on an inherited connection until the other end closes."""
    with Connection(descriptor) as connection:
        try:
            sampler = ValidSetSampler(connection.recv())
            while True:
                order: PlanOrder = connection.recv()
                sampler.set_limits(order.limits)
                connection.send(sampler.new_plan(order.history, order.rng, order.waiting, ahead=True))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    main(int(sys.argv[1]))
