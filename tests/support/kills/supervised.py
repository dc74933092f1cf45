"""A study under a service: kills the service, the shim that records the study's end, and the study itself.

Run as a program, it is `autotune` with the same words, on the core and in the folder of locks of this campaign.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

from tests.support.faults.sessions import DATABASE, NAME, command, note_acknowledged
from tests.support.kills.sessions import Session, on_one_core, write_study

_CATALOGUE = "catalogue"
_PAUSE_S = 0.2
_PATIENCE_S = 600.0


class Supervised(Session):
    """`autotune serve`, and a person who starts a study of its catalogue and waits for its end.

    The person restarts a killed service and resumes a study that was given up.
    """

    name = "served"
    roles = ("service", "shim", "study")

    def prepare(self, folder: Path, token: str) -> None:
        """Write the program, and the catalogue."""
        write_study(folder, token, 0.05)
        (folder / _CATALOGUE).mkdir()
        (folder / f"{NAME}.toml").rename(folder / _CATALOGUE / f"{NAME}.toml")

    def run(self) -> int:
        """Serve until the study is complete."""
        from autotune.client import Client, ServiceError

        words = [sys.executable, "-m", __name__, "serve", f"--catalogue={_CATALOGUE}", "--port=0", "--json"]
        give_up_at = time.monotonic() + _PATIENCE_S
        service, state, said = None, "", ""
        while state != "finished" and time.monotonic() < give_up_at:
            if service is None or service.poll() is not None:
                service, address = _started(words)
            try:
                with Client(address) as client:
                    if state in {"", "failed", "stopped", "paused"}:
                        client.start(NAME)
                    shown = client.study(NAME)
                state = shown["state"]
                said = shown.get("message") or said
            except (ServiceError, OSError, HTTPException) as error:
                said = f"{type(error).__name__}: {error}"
            time.sleep(_PAUSE_S)
        print(f"{state}: {said}", flush=True)
        if service is not None:
            service.send_signal(signal.SIGINT)
            service.wait()
        return 0 if state == "finished" else 3


def _started(words: list[str]) -> tuple[subprocess.Popen[str], str]:
    """Start a service; return it with its address, or with a dead one if it was killed before printing it."""
    service = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert service.stdout is not None
    lines = []
    for line in service.stdout:
        lines.append(line)
        with suppress(ValueError):
            return service, json.loads("".join(lines))["url"]
    return service, "http://127.0.0.1:9"


def main() -> None:
    """Run as `autotune`, and start its studies by this program, too."""
    from autotune.supervision import spawn

    make = spawn.command

    def words(*given: object) -> list[str]:
        made = make(*given)  # type: ignore[arg-type]
        at = made.index("autotune")
        return [*made[:at], __spec__.name, *made[at + 1 :], "--warm-start", "off"]

    spawn.command = words  # type: ignore[assignment]
    os.environ["AUTOTUNE_STORAGE"] = f"sqlite:///{Path(DATABASE).absolute()}"
    on_one_core()
    note_acknowledged()
    sys.exit(command(*sys.argv[1:]))


if __name__ == "__main__":
    main()
