"""A study of the service that runs nothing: its figures are made up, and it goes on by a trial when it is told to."""

import time
from dataclasses import dataclass, field

from tests.autotune.service import fakefigures as figures


@dataclass
class FakeStudy:
    """A study: `trials` are done, one more runs while it is running; one that is `held` stays as it is."""

    name: str
    state: str = "running"
    budget: int = 12
    trials: list = field(default_factory=list)
    message: str = ""
    managed: bool = True
    is_tradeoff: bool = False
    decisions: dict | None = None
    ask_tell: bool = False
    held: bool = False
    waits: str = ""
    objective: str = "quantum-espresso"
    machine: str = figures.MACHINE
    compared: bool = True
    doing: str = ""
    metrics: list = field(default_factory=list)
    checks: list = field(default_factory=list)
    alarms: list = field(default_factory=list)
    labels: dict = field(default_factory=lambda: {"tags": [], "note": "", "archived": False})
    began: float = field(default_factory=time.monotonic)

    def tick(self):
        """Go on by one trial, or to the state that was asked for."""
        self.began = time.monotonic()
        if self.state in {"running", "pausing"}:
            self.trials.append(figures.trial(len(self.trials)))
        if self.state in {"pausing", "stopping"}:
            self.state = {"pausing": "paused", "stopping": "stopped"}[self.state]
        elif self.state == "running" and len(self.trials) >= self.budget:
            self.state = "finished"

    @property
    def incumbent(self):
        return min((one for one in self.trials if one["value"]), key=lambda one: one["value"], default=None)

    @property
    def has_winner(self):
        """Whether a single winner is looked for."""
        return not self.is_tradeoff and self.decisions is None

    @property
    def front_points(self):
        """The best two trials, as if the faster one took more memory."""
        best = sorted((one for one in self.trials if one["value"]), key=lambda one: one["value"])[:2]
        return [
            {
                "trial": one["trial"],
                "configuration": one["configuration"],
                "values": {"wall_s": one["value"], "memory_bytes": (2.1 - at) * 1e9},
                "texts": {"wall_s": f"{one['value']} s", "memory_bytes": f"{2.1 - at:.1f} GB"},
            }
            for at, one in enumerate(best)
        ]

    def brief(self):
        best = self.incumbent
        kinds = [one["state"] for one in self.trials if one["state"] not in {"complete", "running"}]
        gain = best["speed_up"] if best else None
        done = self.state == "finished" and best is not None and self.compared and self.has_winner
        return {
            "name": self.name,
            "study": "qe",
            "state": self.state,
            "message": self.message,
            "objective": self.objective,
            "managed": self.managed,
            "ask_tell": self.ask_tell,
            "metric": figures.METRIC,
            "trials": len(self.trials),
            "budget": self.budget,
            "failures": {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
            "front": len(self.front_points) if self.is_tradeoff else None,
            "baseline": figures.BASELINE if best else None,
            "best": best["value"] if best and self.has_winner else None,
            "fresh": {"best": 1.9, "default": 3.31, "pairs": 19} if done else None,
            "texts": self._texts(best, gain, done=done),
            "speed_up": gain if self.has_winner else None,
            "interval": [gain * 0.94, gain * 1.06] if done else None,
            "verdict": _sentence(gain) if done else None,
            "machine": self.machine,
            "replay": False,
            "started": f"2026-11-22T09:{len(self.name):02}:00",
            "newest": f"2026-11-22T10:{len(self.name):02}:00",
            "by": "ada",
            **self.labels,
            "trouble": "" if best or not self.trials else _trouble(self.trials),
        }

    def _texts(self, best, gain, *, done):
        if best is None:
            return None
        if not self.has_winner:
            return {"best": "", "default": f"{figures.BASELINE} s", "gain": "", "of": "in tuning"}
        if done:
            interval = f"({gain * 0.94:.3f} to {gain * 1.06:.3f})"
            return {
                "best": "1.9 s",
                "default": "3.31 s",
                "gain": f"{gain:.3f}x {interval}",
                "of": "median of 19 fresh runs",
            }
        values = {"best": f"{best['value']} s", "default": f"{figures.BASELINE} s"}
        return values | {"gain": f"looks {gain:.3g}x", "of": "in tuning"}

    def detail(self):
        best = self.incumbent
        active = self.state in {"running", "pausing"}
        run = {
            "trial": len(self.trials),
            "label": "",
            "configuration": figures.configuration(len(self.trials)),
            "elapsed_s": time.monotonic() - self.began,
            "step": 4,
            "metrics": {"scf_accuracy": 0.00123},
            "waits": self.waits,
        }
        doubt = (
            "the interval is wide (1.561 to 1.781): 19 pairs were made, about 35 would narrow it to 5.0% to either side"
        )
        return self.brief() | {
            "running": [run] if active else [],
            "left_s": 95.0 * (self.budget - len(self.trials)) if active else None,
            "phase": "tuning" if active else "",
            "incumbent": _winner(best) if self.has_winner else None,
            "front_points": self.front_points if self.is_tradeoff else [],
            "default": _winner(self.trials[0]) if self.trials else None,
            "simplified": None,
            "verdict_detail": {"doubt": doubt} if self.state == "finished" else None,
            "doubts": [doubt, "others took 12% of these runs' time (median)"] if self.state == "finished" else [],
            "ledger": figures.ledger(len(self.trials)) if self.trials else {},
            "workload": figures.FACTS,
            "noise": "runs of the same configuration differ by 2.1%; the machine drifted by 8%" if best else "",
            "disturbance": "others kept runs from running; of 40 runs, 3 set aside for that" if best else "",
            "first_error": next(
                ({"trial": one["trial"], "message": one["message"]} for one in self.trials if one["message"]), None
            ),
            "metrics": self.metrics,
            "checks": self.checks,
            "alarms": self.alarms,
            "next": "" if active else "Use it: `autotune best done --script sh` writes its job script.",
            "pictures": self._pictures(best),
            "again": figures.AGAIN | {"name": f"{self.name}-2"},
            "version": len(self.trials) * 10 + len(self.state) if self.trials else 0,
        }

    def _pictures(self, best):
        if best is None:
            return []
        if self.decisions is not None:
            return ["decisions"]
        first = ["tradeoff"] if self.is_tradeoff else ["progress"]
        ended = ["pairs", "ablation"] if self.brief()["verdict"] else []
        return [*first, *ended, "importance", "slices"]


def _sentence(gain):
    interval = f"95% interval {gain * 0.94:.3f} to {gain * 1.06:.3f}, 19 interleaved pairs of runs"
    return f"{gain:.3f} times as fast as the default configuration ({interval})"


def _trouble(trials):
    return f"every trial failed, {len(trials)} of {len(trials)}; trial 0: {trials[0]['message']}"


def _winner(one):
    if one is None:
        return None
    return {
        "trial": one["trial"],
        "configuration": one["configuration"],
        "value": one["value"],
        "runs": [one["value"]] * one["runs"],
    }
