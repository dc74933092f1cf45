"""Make UCX ready to be tuned: which benchmark can run here, what its UCX reports, and the space."""

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from launchers.software.digest import file_digest
from objectives.base import Plan, PlanError, RunJob
from objectives.linked_libraries import find_linked_libraries
from objectives.probe import Probe
from objectives.ucx.objective import MERGE_METRICS, UcxObjective, perftest_metrics, program
from objectives.ucx.options import Benchmark, UcxOptions
from objectives.ucx.protocols import INFO, Protocols
from spaces import Choice, Parameter, SpaceError
from spaces.parameters.problem import Problem
from spaces.ucx.config import Variable, lanes, parse
from spaces.ucx.selection import TLS, Selection, select, unknown_names
from spaces.ucx.transports import network_devices, tls_value

_LIMIT_S = 60.0
# Our programs' folder has modules with names of other packages, so it must not be on the search path.
_FLAGS = ("-P",)
_INSTALL_MERGE = (
    "a Python with ucxx and pandas: python3 -m venv V && V/bin/pip install ucxx-cu12 pandas, python = V/bin/python"
)
_INSTALL_PERFTEST = "ucx_perftest and ucx_info: apt-get install ucx-utils, or `module load ucx`"

# Asks for the interpreter's own UCX: the wheel of ucxx contains one, which may differ from the system's.
_PROBE = """
import json, importlib.util, re, ucxx, numpy
try:
    import cudf, cupy
    frames = "cudf" if cupy.cuda.runtime.getDeviceCount() else "pandas"
    version = cudf.__version__
except Exception:
    frames = "pandas"
if frames == "pandas":
    import pandas
    version = pandas.__version__
maps = open("/proc/self/maps").read()
libraries = sorted(set(re.findall(r"(/\\S*/libuc[pst]\\.so\\S*)", maps)))
print(json.dumps({"ucx": "%d.%d.%d" % ucxx.get_ucx_version(), "ucxx": ucxx.__version__, "numpy": numpy.__version__,
    "frames": frames, "version": version, "libraries": libraries}))
"""

PROGRESS = Choice(
    "UCXPY_PROGRESS_MODE",
    ("blocking", "polling", "thread-polling"),
    optional=True,
    help="what drives the communication of ucxx: a sleeping thread by default, a spinning one, or the program itself",
)
DELAYED = Choice(
    "UCXPY_ENABLE_DELAYED_SUBMISSION",
    ("0",),
    optional=True,
    when="not is_set(UCXPY_PROGRESS_MODE) or UCXPY_PROGRESS_MODE == 'thread-polling'",
    help="with a thread, requests are handed over to it by default; 0: they are submitted at once",
)

_THRESHOLD = "UCX_RNDV_THRESH"
_OF_UCXX = {_THRESHOLD: "8192"}  # set by ucxx if unset
_AUTO = "auto"


@dataclass(frozen=True)
class _Installation:
    """A UCX that a benchmark uses: its tools, and the environment in which they load its libraries."""

    benchmark: Benchmark
    program: str
    ucx_info: str
    version: str
    libraries: tuple[Path, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    frames: str = ""
    packages: str = ""


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Choose the benchmark, ask its UCX for variables and transports, and suggest the space.

    Raises:
        PlanError: The options have errors, or no benchmark can run here.
    """
    del machine
    checked = UcxOptions.read(options)
    here = Probe(run_job, folder.resolve(), _LIMIT_S)
    found = _find_installation(checked, here)
    gpu = found.frames == "cudf"
    placement = "intra" if checked.nodes == 1 else "inter"
    devices = _ask_ucx_info(here, found, "devices", ("-d",))
    transports = _transports(checked, set(re.findall(r"Transport: (\S+)", devices)))
    if checked.transports:
        found = replace(found, environment={**found.environment, TLS: tls_value(checked.transports)})
    words = {"variables": ("-c", "-f"), "endpoint": ("-e", "-u", "t", "-P", placement)}
    texts = {what: _ask_ucx_info(here, found, what, asked) for what, asked in words.items()}
    variables = parse(texts["variables"])
    if not variables:
        msg = f"{found.ucx_info} -c -f listed no variables; run it yourself to see why"
        raise PlanError(msg)
    try:
        selection = select(
            [variable for variable in variables if variable.name != TLS or not checked.transports],
            transports,
            patterns=checked.variables,
            only=[pattern for pattern in checked.only if not pattern.startswith("UCXPY_")] if checked.only else None,
            gpu=gpu,
            automatic=lanes(texts["endpoint"]) or None,
            devices={device: names for device, names in network_devices(devices).items() if names & transports},
            nodes=checked.nodes,
        )
    except SpaceError as error:
        raise PlanError(replace(problem, path="options") for problem in error.problems) from None

    def ask(features: str, environment: Mapping[str, str]) -> str:
        command = (found.ucx_info, "-e", "-u", features, "-P", placement)
        output = here.run("protocols", command, {**found.environment, **environment})
        return output.stdout if output else ""

    merge = found.benchmark == "merge"
    protocols = Protocols(ask, checked.spans_bytes(found.benchmark), _OF_UCXX if merge else {})
    objective = _objective(checked, found, variables)
    return Plan(
        objective=objective,
        parameters=_merge_parameters(selection.parameters, checked.only) if merge else selection.parameters,
        constraints=selection.constraints,
        facts=_facts(checked, found),
        installation=("ucx_version",),
        identity=_identity(objective, found),
        notes=_notes(found, transports, len(variables), selection),
        name_errors=lambda names: unknown_names((n for n in names if n.startswith("UCX_")), variables),
        alike=protocols.alike,
    )


def _transports(checked: UcxOptions, there: set[str]) -> set[str]:
    """Return the transports that may be used: those of the options, else all.

    Raises:
        PlanError: A transport of the options is not available here.
    """
    wanted = set(checked.transports)
    if missing := sorted(wanted - there):
        msg = f"there is no transport {', '.join(missing)} here, only {', '.join(sorted(there))}"
        raise PlanError(Problem(msg, "options.transports"))
    return wanted & there or there


def _ucxx_parameters(only: Sequence[str]) -> tuple[Parameter, ...]:
    if not only or any(fnmatchcase(DELAYED.name, pattern) for pattern in only):
        return (PROGRESS, DELAYED)  # DELAYED depends on PROGRESS
    return (PROGRESS,) if any(fnmatchcase(PROGRESS.name, pattern) for pattern in only) else ()


def _merge_parameters(parameters: Sequence[Parameter], only: Sequence[str]) -> tuple[Parameter, ...]:
    """Return the parameters with those of ucxx, and with `auto` for the threshold that ucxx sets itself."""
    return (
        *_ucxx_parameters(only),
        *(
            replace(parameter, values=(_AUTO, *parameter.values))
            if isinstance(parameter, Choice) and parameter.name == _THRESHOLD and _AUTO not in parameter.values
            else parameter
            for parameter in parameters
        ),
    )


def _find_installation(checked: UcxOptions, here: Probe) -> _Installation:
    found = None
    if checked.benchmark in {"auto", "merge"}:
        found = _find_merge(checked, here)
    if checked.benchmark == "perftest" or (found is None and checked.benchmark == "auto" and checked.python is None):
        found = _find_perftest(here)
    if found is not None:
        return found
    why = f"python = {checked.python!r} has no working ucxx and pandas" if checked.python else "none is installed"
    ways = {"merge": _INSTALL_MERGE, "perftest": _INSTALL_PERFTEST}
    needed = [f"{name} needs {way}" for name, way in ways.items() if checked.benchmark in {name, "auto"}]
    msg = f"no benchmark of UCX can run here, {why}; {'; or '.join(needed)}"
    raise PlanError(Problem(msg, "options.benchmark"))


def _find_merge(checked: UcxOptions, here: Probe) -> _Installation | None:
    for python, text in here.find_pythons(checked.python, "ucx", _PROBE):
        data = json.loads(text)
        libraries = tuple(map(Path, data["libraries"]))
        environment = {"LD_LIBRARY_PATH": str(libraries[0].parent)} if libraries else {}
        beside = [str(path.parent.parent / "bin" / "ucx_info") for path in libraries[:1]]
        info = next((path for path in (*beside, "ucx_info") if _version(here, path, environment) == data["ucx"]), None)
        if info is None:
            msg = (
                f"{python} uses UCX {data['ucx']}, but no ucx_info of that version is beside it or on the search path: "
                'install the one of the same UCX, or use benchmark = "perftest"'
            )
            raise PlanError(Problem(msg, "options.python"))
        packages = f"ucxx {data['ucxx']}, numpy {data['numpy']}, {data['frames']} {data['version']}"
        return _Installation("merge", python, info, data["ucx"], libraries, environment, data["frames"], packages)
    return None


def _find_perftest(here: Probe) -> _Installation | None:
    test, info = shutil.which("ucx_perftest"), shutil.which("ucx_info")
    if test is None or info is None:
        return None
    linked = [find_linked_libraries(Path(path)) for path in (test, info)]
    mine, others = (
        tuple(path for name, path in sorted(libraries.items()) if path and re.match(r"libuc[pst]\.", name))
        for libraries in linked
    )
    version = _version(here, info, {})
    if version is None or mine != others:
        msg = f"{test} and {info} use different UCX libraries: {mine} and {others}; load one module or package"
        raise PlanError(msg)
    return _Installation("perftest", str(Path(test).absolute()), info, version, mine)


def _version(here: Probe, ucx_info: str, environment: Mapping[str, str]) -> str | None:
    """Return the version of the library that `ucx_info` loads; None if it does not run."""
    output = here.run("version", (ucx_info, "-v"), environment) if shutil.which(ucx_info) else None
    match = re.search(r"(?:Library version:|Version) (\d+\.\d+\.\d+)", output.stdout) if output else None
    return match[1] if match else None


def _ask_ucx_info(here: Probe, found: _Installation, what: str, words: tuple[str, ...]) -> str:
    output = here.run(what, (found.ucx_info, *words), found.environment)
    if output is None:
        msg = f"{found.ucx_info} {' '.join(words)} failed; run it yourself to see why"
        raise PlanError(msg)
    return output.stdout


def _objective(checked: UcxOptions, found: _Installation, variables: Sequence[Variable]) -> UcxObjective:
    known = {variable.name for variable in variables}
    more = {INFO: "y"} if INFO in known else {}
    more |= {name: value for name, value in found.environment.items() if name == TLS}
    spans = checked.spans_bytes(found.benchmark)
    iterations, warm_up = checked.repeats(found.benchmark)
    repeats = ("--iterations", str(iterations), "--warm-up", str(warm_up))
    if found.benchmark == "merge":
        sizes = ("--rows", str(checked.workload.rows), "--workers", str(checked.workers))
        argv = (found.program, *_FLAGS, program("merge"), "--frames", found.frames, *sizes, *repeats)
        return UcxObjective(argv, checked.workers, MERGE_METRICS, more, spans)
    listed = ",".join(map(str, checked.sizes_bytes()))
    words = ["--program", found.program, "--test", checked.test, "--sizes", listed]
    if checked.server_address is not None:
        words += ["--server", json.dumps(checked.server), "--address", checked.server_address]
    command = (sys.executable, *_FLAGS, program("pair"), *words, *repeats)
    return UcxObjective(command, 2 // checked.nodes, perftest_metrics(checked.test), more, spans)


def _facts(checked: UcxOptions, found: _Installation) -> dict[str, int | float | str | bool]:
    facts: dict[str, int | float | str | bool] = {"benchmark": found.benchmark, "ucx_version": found.version}
    if found.benchmark == "merge":
        rows = checked.workload.rows
        bytes_ = 2 * 16 * rows * checked.workers
        return facts | {"workers": checked.workers, "rows": rows, "data_bytes": bytes_, "frames": found.frames}
    sizes = checked.sizes_bytes()
    return facts | {"workers": 2, "smallest_message_bytes": min(sizes), "largest_message_bytes": max(sizes)}


def _identity(objective: UcxObjective, found: _Installation) -> dict[str, str]:
    name = "merge" if found.benchmark == "merge" else "pair"
    return {
        "ucx": found.version,
        "libraries": ", ".join(f"{path.name} {file_digest(path)}" for path in found.libraries),
        "benchmark": f"{found.benchmark} {file_digest(Path(program(name)))}",
        "workload": " ".join(objective.argv[2 + len(_FLAGS) :]),
        "transports": objective.environment.get(TLS, "all"),
        "packages": found.packages or file_digest(Path(found.program)),
    }


def _notes(found: _Installation, transports: set[str], variables: int, selection: Selection) -> tuple[str, ...]:
    what = {
        "merge": f"merge of distributed tables ({found.packages}) with {found.program}",
        "perftest": f"ucx_perftest at {found.program}",
    }
    left_out = selection.left_out
    return (
        f"benchmark: {what[found.benchmark]}",
        f"UCX {found.version}, transports {', '.join(sorted(transports))}, {variables} variables",
        f"{len(selection.parameters)} of its variables are tuned; {len(left_out)} known ones are left out: "
        + "; ".join(f"{name}: {why}" for name, why in list(left_out.items())[:3])
        + (" ..." if len(left_out) > 3 else ""),
    )
