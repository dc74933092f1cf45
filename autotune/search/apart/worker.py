"""The process of a model: it is given a space, then orders, and answers each with a plan, until the other end closes.

python -m autotune.search.apart.worker DESCRIPTOR
"""

import sys
from multiprocessing.connection import Connection

from autotune.search.batch_proposals import PlanOrder
from autotune.search.gp_sampler import ValidSetSampler


def main(descriptor: int) -> None:
    """Answer on a connection, which this process has inherited."""
    with Connection(descriptor) as connection:
        try:
            sampler = ValidSetSampler(connection.recv())
            while True:
                order: PlanOrder = connection.recv()
                sampler.keep(order.limits)
                connection.send(sampler.new_plan(order.history, order.rng, order.waiting, ahead=True))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    main(int(sys.argv[1]))
