"""Stands in for `autotune study FILE ...`: does what the file says, which may change while it runs.

`run`: continue; `exit CODE`; `die SIGNAL`; `advance exit CODE` or `advance die SIGNAL`: as after a finished trial;
`wait WHY`: for somebody; `deaf`: not to be stopped any more. It takes the signals of a pause and of a stop as a study.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

file, status = Path(sys.argv[1]), Path(sys.argv[sys.argv.index("--status") + 1])

started = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])
boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
process = {"pid": os.getpid(), "started": started, "boot": boot}


def tell(**more):
    aside = status.with_name(".new")
    aside.write_text(json.dumps({"pid": os.getpid(), "process": process, "phase": "tuning", **more}))
    aside.replace(status)


def leave(code):
    os.write(1, f"left with {code}\n".encode())
    os._exit(code)


signal.signal(signal.SIGUSR1, lambda *_: leave(8))
signal.signal(signal.SIGTERM, lambda *_: leave(130))
words = " ".join(sys.argv[2:])
os.write(1, f"study {os.getpid()} {words} on {os.environ['AUTOTUNE_STORAGE']} in {Path.cwd()}\n".encode())
tell(advanced=0)
while True:
    words = file.read_text().split()
    if words[:1] == ["advance"]:
        words.pop(0)
        tell(advanced=1)
    match words:
        case ["wait", *why]:
            tell(phase="waiting", message=" ".join(why))
        case ["deaf"]:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            tell(phase="deaf")
        case ["exit", code]:
            sys.exit(int(code))
        case ["die", number]:
            os.kill(os.getpid(), int(number))
    time.sleep(0.02)
