"""Reading which limits a batch system has, as it tells them itself."""

import re

_SLURM = ("State", "MaxTime", "DefaultTime", "MaxNodes", "MaxCPUsPerNode", "MaxMemPerNode", "PreemptMode")
_NO_LIMIT = frozenset({"", "0", "NONE", "UNLIMITED", "none"})
_NO_GRES = frozenset({"", "(null)"})
_PBS = re.compile(r"^ {4}((?:max_|resources_max|resources_default|enabled|started)[\w.]*) = (.*)$")
_GRID_ENGINE = re.compile(r"^(max_u_jobs|max_jobs|max_aj_instances|max_aj_tasks)\s+(\S+)")


def of_slurm(answer: str) -> tuple[str, ...]:
    """Read `scontrol --oneliner show partition`: of several the one that jobs get by default."""
    tables = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in answer.splitlines() if "PartitionName=" in line]
    chosen = [table for table in tables if table.get("Default") == "YES"] if len(tables) > 1 else tables
    return tuple(
        f"partition {table['PartitionName']}: "
        + ", ".join(f"{name} {table[name]}" for name in _SLURM if table.get(name, "") not in _NO_LIMIT)
        for table in chosen
    )


def kinds_of_slurm(answer: str) -> tuple[str, ...]:
    """Read `sinfo --exact --format=%P|%D|%c|%m|%G` (partition, nodes, cores, memory, GRES): partitions of unlike nodes.

    Of several partitions the one that jobs get by default, if there is one.
    """
    kinds: dict[str, list[str]] = {}
    for line in answer.splitlines():
        partition, nodes, cores, memory_mib, gres = (line.split("|") + [""] * 5)[:5]
        gpus = f" and {gres}" if gres not in _NO_GRES else ""
        kinds.setdefault(partition, []).append(f"{nodes} of {cores} cores, {memory_mib} MiB{gpus}")
    default = {name: each for name, each in kinds.items() if name.endswith("*")}
    advice = 'runs on them do not compare; choose one kind with directives = ["--constraint=..."]'
    unlike = {name.rstrip("*"): "; ".join(each) for name, each in (default or kinds).items() if len(each) > 1}
    return tuple(f"partition {name} has unlike nodes: {each}: {advice}" for name, each in unlike.items())


def federation_of_slurm(answer: str) -> tuple[str, ...]:
    """Read `scontrol show federation`, which prints nothing where there is none."""
    match = re.search(r"^Federation:\s*(\S+)", answer, re.MULTILINE)
    if match is None:
        return ()
    why = "are not supported, since a job may move to a cluster where nobody follows it"
    return (f"federation {match[1]}: federations {why}; run studies where SLURM_CLUSTERS names one cluster",)


def of_pbs(answer: str) -> tuple[str, ...]:
    """Read `qstat -Q -f`."""
    said = []
    for part in re.split(r"^Queue: *", answer, flags=re.MULTILINE)[1:]:
        name, *lines = part.splitlines()
        values = [f"{match[1]} {match[2]}" for line in lines if (match := _PBS.match(line))]
        said.append(f"queue {name.strip()}: {', '.join(values)}")
    return tuple(said)


def of_grid_engine(answer: str) -> tuple[str, ...]:
    """Read `qconf -sconf`."""
    matches = [match for line in answer.splitlines() if (match := _GRID_ENGINE.match(line))]
    return tuple(f"cluster: {match[1]} {match[2]}" for match in matches if match[2] not in _NO_LIMIT)
