"""A separate process that reads the meters of a run, so that a driver that hangs or crashes affects nothing else.

It is not a child of the supervisor, whose children are the job's, and is started only if there may be a meter. The
parts of a job have none: it would be a child of the job's own supervisor, which reads the meters for all parts.
"""

import json
import os
import select
import signal
import time
from collections.abc import Mapping
from typing import Any

from .figures import read_figures
from .perf import can_count_cpus, find_events
from .powercap import SYS, can_read, find_zones

_READY_S = 5.0  # loading a driver takes seconds
_ANSWER_S = 5.0
_HANGS_S = 10  # the process ends itself then; the supervisor has given it up by that time
_FIRST_SAMPLE_S = 0.1
_SAMPLE_S = 1.0
_SAMPLE_COST = 0.001  # of a core at most, unless samples would then be too rare to represent the cards' load
_SELDOM_S = 5.0
_MOST_BYTES = 2**16
_IGNORED = (*(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT), signal.SIGUSR1, signal.SIGUSR2)


class MeterProcess:
    """The meters of one job on this node, from `begin` to `stop`."""

    def __init__(self, sys: str = SYS) -> None:
        """Read the kernel's files below `sys`."""
        self._sys = sys
        self._ask = self._answer = -1

    def begin(self, spec: Mapping[str, Any]) -> None:
        """Start the meters and wait until they have read their counters; give them up after seconds.

        Call it before this process becomes a subreaper, or the meters would become its children.

        Args:
            spec: The job: its number of `gpus` and `nodes`, its `environment`, its `meter` command (may be empty), and
                whether it `is_part` of another job, which has no meters.
        """
        if spec["is_part"]:
            return
        of_node = spec["nodes"] == 1 and (
            any(can_read(folders) for folders in find_zones(self._sys).values())
            or (can_count_cpus() and bool(find_events(self._sys)))
        )
        if not of_node and not spec["gpus"] and not spec["meter"]:
            return
        try:
            self._start(spec)
        except OSError:
            self._close()
        if self._answer >= 0 and not self._read_answer(_READY_S, 1):
            self._close()

    def stop(self) -> None:
        """Tell the meters that the run is over, without waiting for them."""
        if self._ask >= 0:
            try:
                os.write(self._ask, b"\n")
            except OSError:
                self._close()
            else:
                os.close(self._ask)
                self._ask = -1

    def figures(self) -> dict[str, float]:
        """Return the figures of the run (`figures.UNITS`) that the meters report soon."""
        self.stop()
        text = b"" if self._answer < 0 else self._read_answer(_ANSWER_S, _MOST_BYTES)
        self._close()
        try:
            return read_figures(json.loads(text or b"{}"))
        except ValueError:
            return {}

    def _start(self, spec: Mapping[str, Any]) -> None:
        requests, self._ask = os.pipe()
        self._answer, answers = os.pipe()
        try:
            between = os.fork()
            if between == 0:
                try:
                    if os.fork() == 0:
                        os.close(self._ask)
                        os.close(self._answer)
                        self._serve(spec, requests, answers)
                finally:
                    os._exit(0)
            os.waitpid(between, 0)
        finally:
            os.close(requests)
            os.close(answers)

    def _read_answer(self, patience_s: float, most_bytes: int) -> bytes:
        """Return what the meters report within some time; empty if that is nothing or they are gone."""
        try:
            return os.read(self._answer, most_bytes) if select.select([self._answer], [], [], patience_s)[0] else b""
        except OSError:
            return b""

    def _close(self) -> None:
        for end in (self._ask, self._answer):
            if end >= 0:
                os.close(end)
        self._ask = self._answer = -1

    def _serve(self, spec: Mapping[str, Any], requests: int, answers: int) -> None:
        """Read the meters until a byte arrives on `requests` or its other end is closed."""
        for number in _IGNORED:
            # Programs that it starts do not inherit this handler, as they would inherit SIG_IGN.
            signal.signal(number, lambda *_: None)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nowhere, standard)
        os.chdir(os.sep)
        from .run_meters import RunMeters  # noqa: PLC0415  only where there may be a meter

        # The alarm ends this process if a driver hangs.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_HANGS_S)
        meters = RunMeters(spec, self._sys)
        meters.begin()
        signal.alarm(0)
        os.write(answers, b"\n")
        pause_s = _FIRST_SAMPLE_S
        while not select.select([requests], [], [], pause_s)[0]:
            since_s = time.process_time()
            signal.alarm(_HANGS_S)
            meters.sample()
            signal.alarm(0)
            cheap_s = min((time.process_time() - since_s) / _SAMPLE_COST, _SELDOM_S)
            pause_s = max(min(2 * pause_s, _SAMPLE_S), cheap_s)
        if os.read(requests, 1):
            signal.alarm(_HANGS_S)
            os.write(answers, json.dumps(meters.end()).encode())
