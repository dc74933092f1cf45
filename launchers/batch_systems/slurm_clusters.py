"""Which clusters and nodes Slurm's commands mean: federations, lists of clusters, partitions of unlike nodes."""

import re
from collections.abc import Callable, Mapping

from launchers.batch_systems import limits
from launchers.batch_systems.system import LimitsQuestion
from launchers.site import Site

CLUSTERS = "SLURM_CLUSTERS"

FEDERATION = LimitsQuestion(lambda _queue: ["scontrol", "show", "federation"], limits.federation_of_slurm)

# Without --exact a partition of unlike nodes is one line, with the least of them and a plus.
KINDS = LimitsQuestion(
    lambda queue: [
        *("sinfo", "--noheader", "--exact", "--format=%P|%D|%c|%m|%G"),
        *([f"--partition={queue}"] if queue else []),
    ],
    limits.kinds_of_slurm,
)
_CHOOSES = re.compile(r"(?:^|\s)(?:--constraint|-C|--nodelist|-w|--nodefile|-F|--partition|-p|--reservation)\b")


def obstacle(environment: Mapping[str, str], ask: Callable[[list[str]], str]) -> str:
    """Say why jobs cannot be followed here: they might go to several clusters; empty if they cannot."""
    named = environment.get(CLUSTERS, "").strip()
    if "," in named or named == "all":
        return (
            f"{CLUSTERS}={named} names several clusters: a job might go where nobody follows it; name the one that the "
            "study is for"
        )
    return "" if named else "".join(FEDERATION.read(ask(FEDERATION.command("")))[:1])


def cautions(site: Site) -> list[LimitsQuestion]:
    """Return what is to be asked before a study: nothing where the site's lines choose among the nodes already."""
    return [] if any(_CHOOSES.search(directive) for directive in site.directives) else [KINDS]
