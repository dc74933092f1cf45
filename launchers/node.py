"""Runs one job of a batch system on the node where its script was started: `python -I node.py FOLDER`.

The job is described by a file in its folder. It is run by the supervisor, as on the tuner's own machine: with its time
limit, its usage and its status file; but it does not end with the tuner.
"""

import json
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from launchers.status import read_status
from launchers.supervisor import STATUS_FILE, Supervisor

JOB_FILE = ".autotune-job.json"


def main() -> int:
    """Run the job; the exit code is the program's, for the scheduler's own records."""
    folder = Path(sys.argv[1])
    spec = json.loads((folder / JOB_FILE).read_bytes())
    spec |= {"launcher_pid": None, "environment": dict(os.environ) | spec["environment"]}
    path = spec["environment"].get("PATH", os.defpath)
    found = shutil.which(spec["argv"][0], path=path) if "/" not in spec["argv"][0] else spec["argv"][0]
    if found is None:
        return _not_started(folder, f"{spec['argv'][0]} was not found on the node in any of {path}")
    supervisor = Supervisor(spec | {"executable": os.path.join(folder, found)})  # noqa: PTH118  keeps a full path
    try:
        supervisor.start()
    except OSError as error:
        return _not_started(folder, f"cannot start {found} on the node: {error.strerror or error}")
    try:
        supervisor.watch()
        supervisor.finish()
    except BaseException as error:  # noqa: BLE001  whatever it is, nothing of the job may stay behind
        supervisor.give_up(error)
    status = read_status(folder)
    return 1 if status is None or status.exit_code is None else status.exit_code % 256


def _not_started(folder: Path, message: str) -> int:
    status = {"state": "ended", "reason": "not started", "exit_code": None, "message": message}
    new = folder / f"{STATUS_FILE}.new"
    new.write_text(json.dumps(status | {"elapsed_s": 0.0, "cpu_s": 0.0, "peak_memory_bytes": 0}), encoding="utf-8")
    new.rename(folder / STATUS_FILE)
    return 127


if __name__ == "__main__":
    sys.exit(main())
