"""The programs of the stand-ins: `python -IS program.py STATE KIND NAME WORDS...`."""

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.launchers.fakes.options import RefusedError
from tests.launchers.fakes.state import State

PROGRAMS = {
    "slurm": ("sbatch", "squeue", "scancel", "sinfo", "scontrol"),
    "pbs": ("qsub", "qstat", "qdel", "pbsnodes"),
    "grid-engine": ("qsub", "qstat", "qdel"),
    "lsf": ("bsub", "bjobs", "bkill"),
    "flux": ("flux",),
}


def main() -> int:
    """Run one of them."""
    folder, kind, name, *words = sys.argv[1:]
    commands = import_module(f"tests.launchers.fakes.{kind.replace('-', '_')}").COMMANDS
    try:
        return commands[name](words, State(Path(folder)))
    except RefusedError as error:
        print(error, file=sys.stderr)
        return error.code


if __name__ == "__main__":
    sys.exit(main())
