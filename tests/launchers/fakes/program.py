"""The programs of the stand-ins: `python -IS program.py STATE NAME WORDS...`."""

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.launchers.fakes.options import RefusedError
from tests.launchers.fakes.state import State

MODULES = {
    **dict.fromkeys(("sbatch", "squeue", "scancel"), "slurm"),
    **dict.fromkeys(("qsub", "qstat", "qdel"), "pbs"),
    **dict.fromkeys(("bsub", "bjobs", "bkill"), "lsf"),
    "flux": "flux",
}


def main() -> int:
    """Run one of them."""
    folder, name, *words = sys.argv[1:]
    commands = import_module(f"tests.launchers.fakes.{MODULES[name]}").COMMANDS
    try:
        return commands[name](words, State(Path(folder)))
    except RefusedError as error:
        print(error, file=sys.stderr)
        return error.code


if __name__ == "__main__":
    sys.exit(main())
