"""Hosts of PBS: a job can be told on which one to start (`host=` of a chunk, pbs_resources(7B)), not which to avoid.

So the hosts are asked for: `pbsnodes -a` (pbsnodes(8B)), which sums up what the vnodes of a host have.
"""

import re
from collections import defaultdict

from launchers.batch_systems.base import HostsQuestion
from launchers.batch_systems.numbers import count_of
from launchers.job import Place
from launchers.site import Site

# pbs_node_attributes(7B), "state": one that jobs use will be free again; others are down, offline, or resting.
_SERVING = frozenset({"free", "job-busy", "job-exclusive", "<various>"})


def chunk_words(place: Place) -> list[str]:
    """Return what a chunk says of its host, whose name is there without its domain."""
    return [f"host={place.host.partition('.')[0]}"] if place.host else []


def able_hosts(answer: str, site: Site, cores: int) -> list[str]:
    """Read which hosts can start a job of so many cores in a site's queue: those that are free come first."""
    able: dict[str, list[tuple[bool, str]]] = defaultdict(list)
    for part in re.split(r"\n\s*\n", answer.strip()):
        values = dict(re.findall(r"^\s+([\w.]+) = (.*?)\s*$", part, re.MULTILINE))
        host, state = values.get("resources_available.host"), values.get("state", "")
        fits = (count_of(values.get("resources_available.ncpus", "")) or 0) >= cores
        if host is not None and fits and set(state.split(",")) <= _SERVING:
            able[values.get("queue", "")].append((state != "free", host))
    # A queue that has hosts of its own gets no others, and no other queue gets them.
    return [host for _, host in sorted(able.get(site.queue, able[""]))]


ABLE_HOSTS = HostsQuestion(("pbsnodes", "-a"), able_hosts)
