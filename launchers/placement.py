"""How many nodes and cores a job gets at a site."""

from dataclasses import replace

from launchers.job import Job, Resources
from launchers.site import Site


def fewest_nodes(amount: int, per_node: int, most: int) -> int:
    """Return how many nodes with `per_node` of something together have `amount` of it; at most `most`."""
    return max(1, min(most, -(-amount // max(1, per_node))))


def place_job(job: Job, site: Site) -> Job:
    """Return the job with the resources that it gets at a site (`fit_to_site`)."""
    return replace(job, resources=fit_to_site(job.resources, site))


def fit_to_site(wanted: Resources, site: Site) -> Resources:
    """Return the wanted resources on the nodes that their cores and GPUs need, or on more nodes if more are wanted.

    A run gets no more nodes than the site allows; ranks beyond their cores share cores.
    """
    nodes = max(wanted.nodes, fewest_nodes(wanted.cores, site.cores_per_node, site.nodes))
    if site.gpus_per_node:
        nodes = max(nodes, fewest_nodes(wanted.gpus, site.gpus_per_node, site.nodes))
    cores = min(wanted.cores, nodes * site.cores_per_node)
    return replace(wanted, nodes=nodes, cores=cores)


def shares_nodes(job: Job, site: Site) -> bool:
    """Whether other jobs may run on the nodes of a placed job, which uses only some of their cores."""
    return not site.exclusive and job.resources.cores < job.resources.nodes * site.cores_per_node
