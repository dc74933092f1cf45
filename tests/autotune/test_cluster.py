"""Where runs are made: nothing on the machine goes before them by right."""

import os

from autotune.cluster import local_cluster


def niceness():
    return os.nice(0)


def test_the_workers_that_start_runs_are_as_nice_as_we_are():
    import ray  # noqa: PLC0415  after autotune.cluster, which sets it up

    with local_cluster(1):
        assert ray.get(ray.remote(niceness).remote()) == os.nice(0)
