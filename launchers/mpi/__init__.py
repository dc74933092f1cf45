"""The MPI start commands as values: how each is recognised, and which options start ranks.

Each is a module with one value of `MpiStartCommand`; `registry` lists them.
"""

from launchers.mpi.registry import (
    flavour_record,
    recorded_flavour,
    script_flavour,
    spinning_ranks,
    start_command,
    start_commands,
)
from launchers.mpi.start_command import (
    CannotStartRanksError,
    MpiFlavour,
    MpiStart,
    MpiStartCommand,
    RankStart,
    mpi_environment,
    notes,
)

__all__ = [
    "CannotStartRanksError",
    "MpiFlavour",
    "MpiStart",
    "MpiStartCommand",
    "RankStart",
    "flavour_record",
    "mpi_environment",
    "notes",
    "recorded_flavour",
    "script_flavour",
    "spinning_ranks",
    "start_command",
    "start_commands",
]
