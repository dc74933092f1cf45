"""Open MPI's `mpirun`, versions 4 and 5."""

import re

from launchers.mpi.start_command import CannotStartRanksError, MpiFlavour, MpiStartCommand, RankStart, option


def uses_prrte(flavour: MpiFlavour) -> bool:
    """Whether this is Open MPI 5 or later, whose start command is PRRTE's and takes other options."""
    return flavour.version >= (5,)


def _options(flavour: MpiFlavour, start: RankStart) -> list[str]:
    mpi = start.mpi
    options = ["-np", str(mpi.ranks)]
    if len(start.hosts) > 1:
        options += ["--host", ",".join(f"{host}:{start.slots}" for host in start.hosts)]
    if start.is_oversubscribed:
        # A waiting rank must give its core to the others; "none" is the only binding that allows it.
        oversubscribe = ["--map-by", ":OVERSUBSCRIBE"] if uses_prrte(flavour) else ["--oversubscribe"]
        return [*options, *oversubscribe, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    if start.shared:
        return [*options, *_mapping_options(flavour, start, mpi.map_by), "--bind-to", mpi.bind_to or "none"]
    if start.cores:
        return [*options, *_confinement_options(flavour, start)]
    # Open MPI's default would bind all threads of a rank to one core.
    spread = mpi.bind_to is None and start.threads > 1
    map_by = f"{mpi.map_by or 'slot'}:PE={start.threads}" if spread else mpi.map_by
    return [*options, *_mapping_options(flavour, start, map_by), *option("--bind-to", mpi.bind_to)]


def _mapping_options(flavour: MpiFlavour, start: RankStart, map_by: str | None) -> list[str]:
    """Return the options that map ranks. Slots and `PE` count cores, or hardware threads if told to.

    Open MPI 5 takes only one `--map-by`, and there `--use-hwthread-cpus` is another name of its modifier.
    """
    if start.threads_per_core == 1:
        return option("--map-by", map_by)
    if uses_prrte(flavour):
        return ["--map-by", f"{map_by or ''}:HWTCPUS"]
    return ["--use-hwthread-cpus", *option("--map-by", map_by)]


def _confinement_options(flavour: MpiFlavour, start: RankStart) -> list[str]:
    bind_to = start.mpi.bind_to or "none"
    if bind_to == "none":
        return [*_mapping_options(flavour, start, start.mpi.map_by), "--bind-to", "none"]
    # Open MPI numbers hardware threads differently from Linux, and differently in each version.
    if start.threads > 1 or start.threads_per_core > 1 or start.mpi.map_by:
        wanted = f"bind_to = {bind_to!r}" + (f", map_by = {start.mpi.map_by!r}" if start.mpi.map_by else "")
        msg = (
            f"Open MPI cannot keep {start.mpi.ranks} ranks with {wanted} to the cores {list(start.cores)} of this job; "
            "use bind_to = 'none', or give each job the whole machine (one worker)"
        )
        raise CannotStartRanksError(msg)
    listed = ",".join(map(str, start.cores))
    cores = ["--map-by", f"pe-list={listed}:ordered"] if uses_prrte(flavour) else ["--cpu-set", listed]
    return [*cores, "--bind-to", bind_to]


def _environment(flavour: MpiFlavour, user_id: int) -> dict[str, str]:
    variables = {}
    if user_id == 0:
        variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if uses_prrte(flavour):
            variables |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if not flavour.single_copy:
        component = "smsc" if uses_prrte(flavour) else "btl_vader_single_copy_mechanism"
        variables[f"OMPI_MCA_{component}"] = "^cma" if uses_prrte(flavour) else "none"
    return variables


def _notes(flavour: MpiFlavour, user_id: int) -> tuple[str, ...]:
    notes = ["ranks of a job on part of the machine are not bound to single cores, only confined to the job's cores"]
    if user_id == 0:
        notes.append("Open MPI is allowed to run as root, because this user is root")
    if not flavour.single_copy:
        notes.append(
            "this container forbids processes to read each other's memory: messages within the node are copied "
            "twice (Open MPI's CMA is switched off), so times may differ from those outside of it"
        )
    return tuple(notes)


OPEN_MPI = MpiStartCommand(
    name="Open MPI",
    commands=("mpirun", "mpiexec", "orterun"),
    version_patterns=(
        re.compile(r"\(Open ?MPI\)\s+v?(\d+(?:\.\d+)*)", re.IGNORECASE),
        re.compile(r"\(OpenRTE\)\s+v?(\d+(?:\.\d+)*)"),
    ),
    options=_options,
    environment=_environment,
    notes=_notes,
    yielding=("OMPI_MCA_mpi_yield_when_idle", "1"),
)
