"""On how many nodes a job runs, where nobody says it."""

from dataclasses import replace

from launchers.job import Job, Resources
from launchers.site import Site


def fewest_nodes(amount: int, per_node: int, most: int) -> int:
    """Return how many nodes, of which each has `per_node` of something, have `amount` of it; `most` at most."""
    return max(1, min(most, -(-amount // max(1, per_node))))


def place_job(job: Job, site: Site) -> Job:
    """Return a job with what it gets at a site: see `taken`."""
    return replace(job, resources=fit_to_site(job.resources, site))


def fit_to_site(wanted: Resources, site: Site) -> Resources:
    """Return as many of a site's nodes as the wanted cores and GPUs need, or more if so many are wanted.

    A run may have no more nodes than the site allows it: ranks beyond their cores share them.
    """
    nodes = max(wanted.nodes, fewest_nodes(wanted.cores, site.cores_per_node, site.nodes))
    if site.gpus_per_node:
        nodes = max(nodes, fewest_nodes(wanted.gpus, site.gpus_per_node, site.nodes))
    cores = min(wanted.cores, nodes * site.cores_per_node)
    return replace(wanted, nodes=nodes, cores=cores)


def shares_nodes(job: Job, site: Site) -> bool:
    """Whether a placed job has only a part of its nodes, so that others may run beside it."""
    return not site.exclusive and job.resources.cores < job.resources.nodes * site.cores_per_node
