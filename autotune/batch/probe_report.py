"""Report the findings of a site's probe as sentences and as a site file."""

from typing import Any

from autotune.batch.site_probe import SiteFindings
from autotune.tomlfiles.writing import to_toml


def site_sentences(found: SiteFindings) -> list[str]:
    """Return the findings and their consequences, a sentence each."""
    said = [*_starts(found), *_folder(found), *_node(found), *_history(found), *_cores(found), *_starters(found)]
    sights = found.sights
    if sights and not all(sight.can_submit for sight in sights):
        said.append("nodes: jobs cannot be submitted from a node, so a pilot cannot submit itself again")
    said += [f"limits: {limit}" for limit in found.limits] or ["limits: the batch system reports none"]
    return said


def site_table(found: SiteFindings, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a site file: the user's `settings`, completed with the findings."""
    table = dict(settings)
    sights = found.sights
    over_nodes = [sight for sight in sights if sight.hosts > 1]
    if any(sight.mpi_over_nodes for sight in over_nodes):
        table["nodes"] = 1
    elif over_nodes:
        table.setdefault("nodes", 2)
    if sights and not all(sight.is_confined for sight in sights if sight.hosts <= 1):
        table["exclusive"] = True
    mpi = next((sight.mpi for sight in sights if sight.mpi), "")
    if mpi:
        table.setdefault("mpi", mpi)
    return table


def site_text(found: SiteFindings, settings: dict[str, Any]) -> str:
    """Return the text of a site file, with the findings as comments."""
    comments = [f"# {line}" for sentence in site_sentences(found) for line in sentence.splitlines()]
    return "\n".join([f"# Found by `autotune doctor` with jobs of {found.system}.", *comments, ""]) + to_toml(
        site_table(found, settings)
    )


def _starts(found: SiteFindings) -> list[str]:
    times = [f"{job.waited_s:.0f} s" for job in found.jobs if job.waited_s is not None]
    said = [f"start: from submission to start {', '.join(times)}"] if times else ["start: no job has run"]
    for job in found.jobs:
        if job.problem:
            what = "a job of one core" if job.nodes == 1 else f"a job of {job.nodes} nodes"
            said.append(f"{what}: {job.problem}")
    return said


def _folder(found: SiteFindings) -> list[str]:
    sees: dict[str, bool | None] = {}
    for sight in found.sights:
        sees[sight.host] = sight.sees_folder
        if sight.other:
            sees.setdefault(sight.other, sight.other_sees_folder)
    hosts = {answer: ", ".join(sorted(host for host in sees if sees[host] is answer)) for answer in (True, False, None)}
    return [
        *([f"files: this folder has the same path on {hosts[True]}"] if hosts[True] else []),
        *([f"files: this folder is missing on {hosts[False]}: runs there fail"] if hosts[False] else []),
        *([f"files: no command reaches {hosts[None]}, so this folder was not looked for there"] if hosts[None] else []),
    ]


def _node(found: SiteFindings) -> list[str]:
    kinds = {f"{len(sight.online)} hardware threads, {sight.memory_bytes / 2**30:.0f} GiB" for sight in found.sights}
    return [f"node: {kind} of memory (machine: its description)" for kind in sorted(kinds)]


def _history(found: SiteFindings) -> list[str]:
    if found.remembers is None:
        return []
    if found.remembers:
        return ["history: the batch system still reports jobs that have ended"]
    return ["history: none; only its own status file shows how a job ended"]


def _cores(found: SiteFindings) -> list[str]:
    small = [job.sight for job in found.jobs if job.sight is not None and job.nodes == 1]
    if not small:
        return []
    sight = small[0]
    said = []
    if sight.is_confined:
        said.append(f"cores: a job is confined to {len(sight.cpus)} of the {len(sight.online)} of its node")
    else:
        said.append(
            f"cores: a job of one core may use all {len(sight.online)} of its node, so jobs there disturb one another; "
            "exclusive = true gives each run whole nodes"
        )
    pair = found.side_by_side
    if pair is None:
        said.append("cores: the two jobs did not run on one node at the same time, so sharing a node was not tested")
    else:
        both = sorted(set(pair[0].cpus) & set(pair[1].cpus))
        said.append(
            f"cores: two jobs on one node could both use {', '.join(map(str, both))}"
            if both
            else "cores: two jobs on one node had different cores"
        )
    return said


def _starters(found: SiteFindings) -> list[str]:
    said = []
    for sight in found.sights:
        for name, complaint in sight.starters.items():
            if complaint is not None:
                said.append(f"nodes: {name} {'reaches' if not complaint else 'does not reach'} the other node of a job")
                if complaint:
                    said[-1] += f" ({complaint})"
        if sight.mpi_over_nodes == "":
            said.append(f"nodes: {sight.mpi} starts ranks on both nodes of a job")
        elif sight.mpi_over_nodes is not None:
            said.append(
                f"nodes: {sight.mpi} does not start ranks on both nodes of a job ({sight.mpi_over_nodes}), "
                "so runs have one node (nodes = 1)"
            )
    return said
