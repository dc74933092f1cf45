"""The N-th system call fails: what is lost, doubled, left behind, or ends otherwise than without the fault.

    python benchmarks/faults.py [--session local] [--fault crash] [--events 1000] [--seconds 600] [--json]

Small sessions (`autotune study` on this machine, and with a batch system; a client that asks and tells; an upgrade of a
storage) are run again and again, each with one fault at one system call: the process dies there, or the call fails, or
the clock jumps. Then the same command is run once more, undisturbed, and everything is compared with a twin that was
left alone. Without --events and --seconds every call of every session is struck, which takes hours. What went wrong is
written to standard error, and is repeated by --session, --fault and --at.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.faults import library
from tests.support.faults.campaign import Request, start

HARMS = ("lost", "doubled", "left", "different", "unsaid")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--session", choices=Request.sessions, action="append")
    parser.add_argument("--fault", choices=Request.faults, action="append")
    parser.add_argument("--at", type=int, help="only this call")
    parser.add_argument("--events", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if reason := library.why_not():
        sys.exit(reason)
    request = Request(
        tuple(options.session or Request.sessions),
        tuple(options.fault or Request.faults),
        options.events,
        options.seconds,
        options.seed,
        options.at,
    )
    began_s = time.monotonic()
    events: Counter[str] = Counter()
    harms: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for event, harm in start(request, Path(folder)):
            events[event.fault] += 1
            if not options.json and events.total() % 100 == 0:
                print(f"{events.total()} events, {harms.total()} harms", file=sys.stderr, flush=True)
            harms.update((event.fault, kind) for kind in harm)
            for kind, found in harm.items():
                said = f"{event.session}, {event.fault} at {event.at}: {kind}: {found}"
                print(said[:2000], file=sys.stderr, flush=True)
    rows = [
        {"fault": fault, "events": count, **{kind: harms[fault, kind] for kind in HARMS}, "bound": round(3 / count, 4)}
        for fault, count in sorted(events.items())
    ]
    total = events.total()
    if total:
        sums = {kind: sum(harms[fault, kind] for fault in events) for kind in HARMS}
        rows.append({"fault": "all", "events": total, **sums, "bound": round(3 / total, 4)})
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'fault':24}{'events':>8}{'lost':>8}{'doubled':>9}{'left':>8}{'different':>11}{'unsaid':>8}{'3/n':>9}")
    for row in rows:
        print("{fault:24}{events:8}{lost:8}{doubled:9}{left:8}{different:11}{unsaid:8}{bound:9.2%}".format(**row))
    print(f"{time.monotonic() - began_s:.0f} s")


if __name__ == "__main__":
    main()
