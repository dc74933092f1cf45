"""How the ranks of a job are started: pure functions from a job to the command line of an MPI start command.

Each start command is one module with one value of `MpiStartCommand`; `registry` lists them.

Two jobs must never share a core. Left to itself, Open MPI (4 and 5) binds the first ranks of *every* job to the cores
0, 1, ..., also when `mpirun` itself was given other cores; with `--bind-to none` its ranks keep those of `mpirun`.
"""

from launchers.mpi.command_line import mpi_argv, mpi_environment, notes
from launchers.mpi.record import flavour_record, script_flavour
from launchers.mpi.registry import start_command, start_commands
from launchers.mpi.start_command import CannotStartRanksError, MpiFlavour, MpiStartCommand, RankStart

__all__ = [
    "CannotStartRanksError",
    "MpiFlavour",
    "MpiStartCommand",
    "RankStart",
    "flavour_record",
    "mpi_argv",
    "mpi_environment",
    "notes",
    "script_flavour",
    "start_command",
    "start_commands",
]
