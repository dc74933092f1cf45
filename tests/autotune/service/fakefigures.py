"""Plausible figures for the fake service: a study of pw.x that gets better, its pictures, machines and predictions."""

from itertools import accumulate

METRIC = {"name": "wall_s", "unit": "s", "direction": "minimize", "quality": False}
MACHINE = "node17, 48 cores of Intel(R) Xeon(R) Platinum 8274"
FACTS = {"kpoints": 9, "bands": 24, "atoms": 6, "fft": "40 x 40 x 30", "cores": 48}
CATALOGUE = [
    {
        "name": "qe",
        "objective": "quantum-espresso",
        "description": "An SCF cycle of pw.x: ranks, pools, threads, BLAS and binding.",
        "trials": 50,
        "ask_tell": False,
        "parameters": ["np", "npool", "ntg", "blas", "threads"],
    },
    {
        "name": "own",
        "objective": "command",
        "description": "",
        "trials": 12,
        "ask_tell": True,
        "parameters": ["block", "threads"],
    },
]
AGAIN = {
    "study": "qe",
    "trials": 12,
    "timeout": "1800s",
    "workers": None,
    "seed": 7,
    "cores": "0-3",
    "launcher": None,
}
MACHINES = [
    {"name": "gadi", "description": "NCI Gadi: 48 cores of two Xeon Platinum 8274 and 192 GB a node"},
    {"name": "summit", "description": "OLCF Summit: two POWER9 and six V100 a node"},
]
BASELINE = 3.34
BLAS = (None, "openblas-openmp", "blis-pthread", "openblas-pthread")
KINDS = ("complete", "complete", "capped", "complete", "out of memory", "complete", "timed out", "complete")
LOG = "pw.x 6.7MaX\ninput tio2: 9 k-points, 24 bands\nspace: 234 valid configurations of 1536 combinations\n"


def configuration(number):
    """Return the configuration of a trial; trial 0 is the default."""
    if number == 0:
        return {"np": 48, "npool": 1, "ntg": 1, "blas": None, "threads": 1}
    ranks = (48, 24, 16, 12, 8)[number % 5]
    return {
        "np": ranks,
        "npool": (1, 3, 9)[number % 3],
        "ntg": 1 + number % 2,
        "blas": BLAS[number % 4],
        "threads": 48 // ranks,
    }


def trial(number, *, running=False):
    """Return a trial as the service describes it."""
    state = "running" if running else KINDS[number % len(KINDS)]
    value = (
        round(BASELINE * (1.0 if number == 0 else 0.55 + 0.5 / (1 + number % 11)), 4) if state == "complete" else None
    )
    return {
        "trial": number,
        "state": state,
        "runs": 0 if running else 1 + (number % 3 == 0),
        "value": value,
        "bound": 2.26 if state == "capped" else None,
        "speed_up": round(BASELINE / value, 4) if value else None,
        "confirmed": number == 0,
        "core_s": 0.0 if running else 48 * (value or 2.5),
        "configuration": configuration(number),
        "message": {"timed out": "had not ended after 60 s", "out of memory": "node17: killed at 180 GB"}.get(
            state, ""
        ),
        "text": f"{value} s" if value else "> 2.26 s" if state == "capped" else "",
        "gain": f"looks {BASELINE / value:.3g}x" if value else "",
    }


def runs(trial):
    """Return the runs of a trial."""
    run = {
        "purpose": "tuning",
        "state": trial["state"],
        "value": trial["value"],
        "bound": trial["bound"],
        "metrics": {"wall_s": trial["value"], "scf_steps": 11} if trial["value"] else {},
        "started": "2026-11-23T10:00:00+00:00",
        "host": "node17",
        "elapsed_s": 2.7,
        "core_s": trial["core_s"],
        "memory_bytes": 124_700_000,
        "text": trial["text"],
        "texts": {"peak_memory_bytes": "124.7 MB"} | ({"scf_steps": "11"} if trial["value"] else {}),
        "disturbance": "others took 3% of its time",
        "message": trial["message"],
        "commands": ["mpirun -np 24 pw.x -inp tio2.in"],
        "stdout": "     convergence has been achieved in  11 iterations\n",
        "stderr": "node17: killed\n" if trial["message"] else "",
    }
    return [run] * trial["runs"]


def ledger(count):
    """Return what so many trials cost, in core-seconds."""
    return {
        "first_runs": 110.0 * count,
        "repeats": 60.0 * count,
        "baseline": 480.0,
        "capped": 20.0 * count,
        "failed": 12.0 * count,
        "verdict": 0.0,
        "comparisons": 0.0,
        "gpu_s": 0.0,
        "saved_by_caps": 31.0 * count,
        "spared_by_racing": 220.0 * count,
        "saved_per_run": 63.0,
        "busy_share": 0.81,
        "spent": 480.0 + 202.0 * count,
        "pays_after": 8 + 4 * count,
    }


def pictures(trials):
    """Return all pictures of a study with these trials, by name."""
    valid = [one for one in trials if one["value"] is not None]
    if not valid:
        return {}
    drawn = [_progress(trials, valid), _pairs(), _ablation(), _importance(), _slices(valid), _tradeoff(valid)]
    decisions = _tradeoff(valid) | {"name": "decisions", "title": "The decision table"}
    return {one["name"]: one for one in (*drawn, decisions)}


def _tradeoff(valid):
    times, sizes = [one["value"] for one in valid], [2.1 - 0.1 * at for at in range(len(valid))]
    hover = [f"trial {one['trial']}" for one in valid]
    panel = _panel(_axis("wall_s [s]"), _axis("memory [GB]"), _mark("points", "trial", times, sizes, hover=hover))
    rows = [list(row) for row in zip(times, sizes, strict=True)]
    return _picture("tradeoff", "The trade-off", "wall_s and memory of trials.", ["wall_s", "memory"], rows, panel)


def _picture(name, title, description, columns, rows, *panels):
    table = {"columns": columns, "rows": rows}
    figure = {"columns": 3, "panels": list(panels)}
    return {"name": name, "title": title, "description": description, "table": table, "figure": figure}


def _axis(title="", **more):
    return {"title": title, "log": False, "ticks": None, "reverse": False, "whole": False, **more}


def _panel(x, y, *marks):
    return {"title": "", "x": x, "y": y, "marks": list(marks)}


def _mark(kind, role, x, y, **more):
    return {"kind": kind, "role": role, "label": role, "x": x, "y": y, **more}


def _points(role, trials, values):
    hover = [f"trial {number}: {value} s\nnp=24" for number, value in zip(trials, values, strict=True)]
    return _mark("points", role, trials, values, hover=hover)


def _progress(trials, valid):
    numbers, values = [one["trial"] for one in valid], [one["value"] for one in valid]
    capped = [one["trial"] for one in trials if one["state"] == "capped"]
    failed = [one["trial"] for one in trials if one["state"] in {"out of memory", "timed out"}]
    ends = [0, max(1, len(trials) - 1)]
    high, low = 1.03 * BASELINE, 0.97 * BASELINE
    panel = _panel(
        _axis("trial", whole=True),
        _axis("wall_s [s]"),
        {"kind": "band", "role": "band", "label": "range", "x": ends, "low": [low, low], "high": [high, high]},
        _mark("line", "baseline", ends, [BASELINE, BASELINE]),
        _mark("line", "best", numbers, list(accumulate(values, min)), steps=True),
        _points("trial", numbers, values),
        _points("capped", capped, [2.26] * len(capped)),
        _points("failed", failed, [high] * len(failed)),
    )
    rows = [[one["trial"], one["state"], one["value"]] for one in trials]
    text = "Every trial, the best so far, and the default with what its own runs differ by."
    return _picture("progress", "Progress", text, ["trial", "state", "wall_s"], rows, panel)


def _pairs():
    ratios = [1.71, 1.62, 1.69, 1.66, 1.58, 1.73, 1.67]
    ends = [0.5, len(ratios) + 0.5]
    panel = _panel(
        _axis("pair", whole=True),
        _axis("speed-up"),
        {"kind": "band", "role": "band", "label": "range", "x": ends, "low": [1.57, 1.57], "high": [1.77, 1.77]},
        _mark("line", "best", ends, [1.667, 1.667]),
        _mark("points", "winner", list(range(1, len(ratios) + 1)), ratios),
    )
    rows = [[number, ratio] for number, ratio in enumerate(ratios, 1)]
    text = "The speed-up in each of 7 fresh pairs of runs."
    return _picture("pairs", "Fresh pairs of runs", text, ["pair", "speed-up"], rows, panel)


def _slices(valid):
    values = [one["value"] for one in valid]
    numbers = [one["trial"] for one in valid]
    panels = []
    for name in ("np", "npool", "threads"):
        points = _points("trial", numbers, values) | {"x": [one["configuration"][name] for one in valid]}
        panels.append(_panel(_axis(name), _axis("wall_s [s]"), points))
    words = ["unset", *BLAS[1:]]
    places = [float(words.index(one["configuration"]["blas"] or "unset")) for one in valid]
    axis = _axis("blas", ticks=[[float(at), word] for at, word in enumerate(words)])
    panels.append(_panel(axis, _axis("wall_s [s]"), _points("trial", numbers, values) | {"x": places}))
    rows = [[one["trial"], one["value"], one["configuration"]["np"]] for one in valid]
    text = "The value of every valid trial over each of its parameters."
    return _picture("slices", "Slices", text, ["trial", "wall_s", "np"], rows, *panels)


def _bars(role, words, values, title, **more):
    places = [float(at) for at in range(len(words))]
    y = _axis(ticks=[[at, word] for at, word in zip(places, words, strict=True)], reverse=True)
    hover = [f"{word}: {value}" for word, value in zip(words, values, strict=True)]
    return _panel(
        _axis(title),
        y,
        {"kind": "bars", "role": role, "label": "", "y": places, "values": values, "hover": hover, **more},
    )


def _ablation():
    effects = [("blas", 1.31, 0.04), ("npool", 1.12, 0.03), ("ntg", 1.005, 0.02)]
    rows = [[name, middle, middle - error, middle + error] for name, middle, error in effects]
    names, middles, low, high = (list(column) for column in zip(*rows, strict=True))
    panel = _bars("trial", names, middles, "speed-up alone on the default", low=low, high=high)
    text = "What each changed option is worth alone on the default, with its interval."
    return _picture("ablation", "Ablation", text, ["option", "speed-up", "low", "high"], rows, panel)


def _importance():
    rows = [["blas", 62.0], ["np", 31.0], ["npool", 6.0], ["ntg", 1.0]]
    names, shares = (list(column) for column in zip(*rows, strict=True))
    text = "Most of the differences in wall_s are explained by blas 62%, np 31% and npool 6%."
    panel = _bars("trial", names, shares, "importance [%]")
    return _picture("importance", "What matters", text, ["parameter", "share [%]"], rows, panel)


def prediction(machine, k):
    """Return proposals for a machine; nothing can be proposed for `summit`."""
    proposals = [
        {
            "configuration": configuration(number),
            "value": [2.0 + 0.05 * number, 1.6, 2.9],
            "speed_up": [1.6 - 0.05 * number, 1.1, 2.1],
            "measured_runs": 0,
            "by_verdict": False,
            "text": f"{2.0 + 0.05 * number:.4g} s (1.6 s to 2.9 s)",
            "gain": f"{1.6 - 0.05 * number:.3f}x (1.100 to 2.100)",
        }
        for number in range(1, k + 1)
    ]
    proposals[0] |= {
        "value": [2.672, 2.6, 2.75],
        "measured_runs": 3,
        "by_verdict": True,
        "text": "2.672 s, measured in 3 runs",
    }
    if k > 2:
        proposals[2] |= {"measured_runs": 1, "gain": "looks 1.45x"}
    proposals[-1] |= {"value": None, "speed_up": None, "text": "not known", "gain": "not known"}
    default = {"configuration": configuration(0), "value": [3.4, 2.6, 4.4], "speed_up": None, "measured_runs": 5}
    none = machine == "summit"
    return {
        "machine": machine or "node17",
        "metric": METRIC,
        "promising": not none,
        "default": default | {"text": "3.4 s, measured in 5 runs", "gain": ""},
        "proposals": [] if none else proposals,
        "grounds": ["51 runs of pw.x on 2 machines"],
        "doubts": ["nothing was measured on a machine with POWER9"] if none else ["one workload only"],
        "measured": [
            {"configuration": configuration(number), "value": 2.672, "runs": 3, "text": "2.672 s"} for number in (1, 0)
        ],
        "reasons": [] if none else [["np", 1.31], ["npool", 1.12]],
    }


DECISIONS = {
    "columns": ["size", "use", "over the default", "95% interval", "pairs"],
    "rows": [["100 to 1000", "default", "", "", ""], ["10000 to 50000", "way=index", "9.400", "3.200 to 31.000", "8"]],
    "sentences": ["2 of 4 cells are better with another setting than the default."],
}
_KNOWN = {
    "program": "solver",
    "machine": "Paper CPU, 48 cores",
    "workload": "solver 12ab34cd",
    "identity": "56ef78ab",
    "facts": {"n_atoms": 6},
    "configuration": {"np": 2, "npool": 1},
    "metric": {"name": "wall_s", "unit": "s", "direction": "minimize", "quality": False},
    "value": 2.01,
    "default": {"np": 8},
    "default_value": 3.36,
    "speed_up": 1.67,
    "interval": [1.57, 1.77],
    "confirmed": True,
    "doubt": "",
    "study": "done",
    "studies": ["done", "older"],
    "trials": 12,
    "runs": 14,
    "when": "2026-11-22T20:51:07",
    "who": "ada",
    "host": "node17",
    "text": "2.01 s",
    "default_text": "3.36 s",
    "gain": "1.670x (1.570 to 1.770)",
}
KNOWN = [
    _KNOWN,
    _KNOWN
    | {"program": "melt", "speed_up": 2.1, "interval": None, "confirmed": False, "doubt": "too few pairs"}
    | {"gain": "looks 2.1x, not confirmed"},
]


def estimate(order, made):
    """What an order would cost of which some trials are made; of its own program nothing was measured."""
    if order["study"] != "qe":
        return None
    trials = max(0, order.get("trials", 50) - made)
    seconds = {"about": 30.0 * trials, "low": 25.0 * trials, "high": 35.0 * trials}
    cores = {key: 24.0 * value for key, value in seconds.items()}
    return {
        "trials": trials,
        "study": "done",
        "machine": MACHINE,
        "measured": 12,
        "core_s": cores,
        "elapsed_s": seconds,
    }
