"""Make pw.x ready to be tuned: the program, the input, a dry run for the size of the problem, and the space."""

import hashlib
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from launchers import Job, LaunchError, MpiStart, Resources
from launchers.detect import detect
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.software.transient_errors import is_transient
from objectives import blas
from objectives.base import MemoryNeed, Output, Plan, PlanError, RunJob
from objectives.linked_libraries import find_linked_libraries, library_identity
from objectives.qe import pseudo
from objectives.qe.costs import USUAL_ITERATIONS
from objectives.qe.deck import Deck
from objectives.qe.description import describe_input
from objectives.qe.division import chooses_layout
from objectives.qe.failures import find_failure
from objectives.qe.input_check import find_problems
from objectives.qe.kpoints import has_pools
from objectives.qe.objective import (
    ALLOCATORS,
    INPUT_NAME,
    RELAXATIONS,
    TRANSPORTS,
    QeObjective,
    own_folder_values,
)
from objectives.qe.options import QeOptions, input_text
from objectives.qe.output import PwOutput, Workload, parse
from objectives.qe.saved import BAND_STRUCTURES, OUTPUT_FOLDER, Saved, save_once
from spaces import Space, Value
from spaces import qe as space
from spaces.parameters.problem import Problem

_LACKS_MEMORY = (
    "by its own estimate pw.x needs more memory than there is, even for the default configuration; give it more nodes, "
    "or fewer ranks (--set options.max_ranks=N)"
)
_TWO = 2
_DRY = "dry"  # the prefix of the files of dry runs
_DRY_RUN_LIMIT_S = 300.0
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_HUGE_PAGES_GLIBC = (2, 35)
_DISTRIBUTED = b"distributed-memory algorithm"  # the text is in builds that can share the subspace problem
_INSTALLATION = ("pw_version", "openmp", "scalapack", "system_blas")
_SPELLINGS = {"davidson": "david"}
_INPUTS_THAT_MATTER = ("diagonalization", "diago_david_ndim", "mixing_mode", "mixing_ndim", "startingwfc", "disk_io")


@dataclass(frozen=True)
class _Program:
    """pw.x as it is installed here."""

    path: Path
    digest: str
    libraries: Mapping[str, Path | None]
    is_distributed: bool
    blas: tuple[blas.Blas, ...]

    @property
    def system_blas(self) -> str | None:
        return blas.system_blas(dict(self.libraries))


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Find pw.x, check the input, learn the size of the problem from a dry run in `folder`, and suggest the space.

    If nothing is going to run (`nothing_runs`), the problem may be described by its input without pw.x, or by facts.

    Raises:
        PlanError: pw.x is missing, or the input cannot be tuned; all known reasons are reported.
    """
    checked = QeOptions.read(options)
    needs_more = checked.prepared_by is not None and machine.get("makes_files") is False
    if needs_more or (machine.get("nothing_runs") and (checked.facts or shutil.which(checked.program) is None)):
        return _plan_without_program(checked, machine)
    if checked.facts is not None:
        msg = "pw.x itself prints the size of the problem here; leave the facts out, or predict for --machine NAME"
        raise PlanError(Problem(msg, "options.facts"))
    folder = folder.resolve()
    errors: list[str] = []
    program = _find_program(checked.program, errors)
    deck, files = _read_input(checked, errors)
    if errors or program is None:
        raise PlanError(errors)
    deck = _with_pseudo_folder(deck, files, folder)
    saved, saved_identity = _find_saved(checked, deck, machine, run_job, folder)
    seen = _dry_run(program, deck, saved, run_job, folder / "dry-run")
    facts = _space_facts(checked, machine, program, deck, seen)
    if facts.memory_may_lack:
        place = _prepare_run_folder(folder / "dry-run" / "pools", deck, saved)
        facts = _with_copies(facts, run_job, _stopping_job(program, deck, place, MpiStart(_TWO)))
    lacks_memory = space.default_lacks_memory(facts)
    if lacks_memory:  # the space must contain the default
        facts = replace(facts, node_memory_bytes=0)
    tolerance_ry = checked.energy_tolerance_ry or deck.energy_tolerance_ry
    inherited = os.environ.get("LD_LIBRARY_PATH", "")
    return Plan(
        objective=QeObjective(
            program=checked.program,
            deck=deck,
            tolerance_ry=tolerance_ry,
            cores_per_node=facts.cores_per_node,
            nodes=facts.nodes,
            library_paths={library.name: library.library_path(inherited) for library in program.blas},
            saved=saved,
            tolerance_is_stated=checked.energy_tolerance_ry is not None,
        ),
        parameters=space.parameters(facts),
        constraints=space.constraints(facts),
        facts=_facts(facts, program, seen) | _length(deck),
        identity={
            "input": hashlib.sha256(input_text(checked.input)[2]).hexdigest(),
            "pseudopotentials": _digest_of(files),
            "pw.x": f"{seen.version or 'unknown'} {program.digest[:16]}",
            **blas.identity(program.libraries, program.blas),
            **library_identity(program.libraries),
            **saved_identity,
        },
        reading={"energy_tolerance_ry": repr(tolerance_ry)},
        notes=(*_notes(checked, program, facts, seen), *_limit_notes(deck)),
        installation=_INSTALLATION,
        warnings=(_LACKS_MEMORY,) if lacks_memory else (),
        memory=_memory_need(facts),
        stops_after_s=_stops_after_s(deck),
    )


def _plan_without_program(checked: QeOptions, machine: Mapping[str, Any]) -> Plan:
    """Return the plan of an input, or of facts, for another machine; nothing runs, and pw.x may be missing."""
    given = describe_input(checked)
    facts = _space_facts(checked, machine, None, given.deck, PwOutput(workload=given.size))
    return Plan(
        objective=QeObjective(
            checked.program, given.deck, given.deck.energy_tolerance_ry, facts.cores_per_node, facts.nodes
        ),
        parameters=space.parameters(facts),
        constraints=space.constraints(facts),
        facts=dict(space.rule_facts(facts)) | given.size.sizes | _length(given.deck),
        identity=given.identity,
        notes=(_size_note(given.name, given.size), *_limit_notes(given.deck), given.note),
        is_described=True,
        stops_after_s=_stops_after_s(given.deck),
    )


def _find_saved(
    checked: QeOptions, deck: Deck, machine: Mapping[str, Any], run_job: RunJob, folder: Path
) -> tuple[Saved | None, Mapping[str, str]]:
    """Return the files from which the input continues, and their identity; run `prepared_by` if the options name it."""
    if checked.saved is not None:
        saved = Saved.find(checked.saved, deck.prefix)
        return saved, {"saved": saved.digest}
    if checked.prepared_by is None:
        return None, {}
    if machine.get("described"):
        msg = "the plan is for another machine: make that run there, and name its outdir (saved = FOLDER)"
        raise PlanError(Problem(msg, "options.prepared_by"))
    # The other options are about the study's own input.
    options = {"input": checked.prepared_by, "program": checked.program, "pseudo_cache": checked.pseudo_cache}
    first = plan(options, machine=machine, run_job=run_job, folder=folder / "prepared")
    objective = first.objective
    if isinstance(objective, QeObjective):
        objective = replace(objective, deck=objective.deck.with_values("control", {"prefix": deck.prefix}))
    default = Space(first.parameters, first.constraints, first.facts).default()
    saved = save_once(objective, default, first.identity, deck.prefix, run_job)
    atoms = first.identity["pseudopotentials"]
    return saved, {"prepared by": first.identity["input"], "pseudopotentials of that": atoms}


def _with_pseudo_folder(deck: Deck, files: Mapping[str, Path], folder: Path) -> Deck:
    """Return the deck with an absolute path to its pseudopotentials, which is valid from any folder."""
    home = pseudo.gather(files, folder / "pseudo")
    return deck.with_values("control", {"pseudo_dir": f"{home}/"})


def _find_program(name: str, errors: list[str]) -> _Program | None:
    found = shutil.which(name)
    if found is None:
        errors.append(
            f"{name} is not installed here: `module load` Quantum ESPRESSO (`module avail qe espresso`), or install it "
            "(Debian: apt-get install quantum-espresso quantum-espresso-data; conda: conda install -c conda-forge qe)"
        )
        return None
    path = Path(found).absolute()
    contents = path.read_bytes()
    linked = find_linked_libraries(path)
    return _Program(
        path=path,
        digest=hashlib.sha256(contents).hexdigest(),
        libraries=linked,
        is_distributed=any("scalapack" in name or "elpa" in name for name in linked) or _DISTRIBUTED in contents,
        blas=blas.find(path),
    )


def _read_input(checked: QeOptions, errors: list[str]) -> tuple[Deck, dict[str, Path]]:
    try:
        name, home, text = input_text(checked.input)
    except PlanError as error:
        errors.append(str(error))
        return Deck(""), {}
    deck = Deck(text.decode("utf-8", errors="surrogateescape"))
    found = find_problems(deck, has_saved=bool(checked.saved or checked.prepared_by))
    cache = Path(checked.pseudo_cache).expanduser() if checked.pseudo_cache else pseudo.cache_folder(os.environ)
    folders = (*pseudo.search_folders(deck, home, os.environ), cache)
    try:
        pseudo.generate(_find_missing(deck, folders), cache)
    except PlanError as error:
        found.append(str(error))
    files, missing = pseudo.locate(deck.pseudopotentials, folders)
    errors.extend(f"{name}: {problem}" for problem in [*found, *missing])
    return deck, files


def _find_missing(deck: Deck, folders: tuple[Path, ...]) -> list[str]:
    files, _ = pseudo.locate(deck.pseudopotentials, folders)
    return [name for name in deck.pseudopotentials if name not in files]


def _dry_run(program: _Program, deck: Deck, saved: Saved | None, run_job: RunJob, folder: Path) -> PwOutput:
    """Return what pw.x prints about the problem.

    The first attempt is without the MPI start command, which is quicker on machines that allow it.
    """
    output = None
    for start in (None, MpiStart(1)):
        place = _prepare_run_folder(folder / ("mpi" if start else "single"), deck, saved)
        output = _run(run_job, _stopping_job(program, deck, place, start))
        if output is not None:
            seen = parse(output.stdout)
            if seen.workload.kpoints and seen.workload.bands:
                return seen
    if output is None:
        msg = f"{program.path} could not be started; run it yourself to see why: {program.path} -inp FILE"
        raise PlanError(msg)
    failure = find_failure(output, parse(output.stdout))
    msg = f"a dry run of {program.path} did not say how large the problem is: {failure or 'no k-points in its output'}"
    raise PlanError(msg)


def _prepare_run_folder(folder: Path, deck: Deck, saved: Saved | None) -> Path:
    """Return the folder of a dry run, with a copy of the files from which its input continues."""
    if saved is not None:
        saved.copy_into(deck, folder, _DRY)
    return folder


def _stopping_job(program: _Program, deck: Deck, folder: Path, start: MpiStart | None) -> Job:
    """Return a run that ends once it has printed the size of the problem: it finds the file that asks it to stop."""
    # max_seconds stops versions that look for the file only after the first iteration.
    stopping = deck.with_values("control", {**own_folder_values(deck), "prefix": _DRY, "max_seconds": 1.0})
    out = folder / OUTPUT_FOLDER
    out.mkdir(parents=True, exist_ok=True)
    for place in (folder, out):
        (place / f"{_DRY}.EXIT").touch()
    stopping.write(folder / INPUT_NAME)
    return Job(
        argv=(str(program.path), "-inp", INPUT_NAME),
        folder=folder,
        environment=_root_permission(),
        mpi=start,
        resources=Resources(cores=start.ranks if start else 1),
        time_limit_s=_DRY_RUN_LIMIT_S,
        name="dry-run",
    )


def _run(run_job: RunJob, job: Job) -> Output | None:
    """Run a job; None if it could not be started."""
    try:
        return run_job(job)
    except LaunchError:
        return None


def _root_permission() -> dict[str, str]:
    """Return variables that let root start Open MPI programs, also without the start command."""
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}


def _space_facts(
    checked: QeOptions, machine: Mapping[str, Any], program: _Program | None, deck: Deck, seen: PwOutput
) -> space.QeFacts:
    cores = int(machine.get("cores", 1))
    grid = seen.workload.smooth_grid
    # The libraries of another machine are unknown here; builds for clusters can share the subspace problem.
    here = None if machine.get("described") else program
    libraries_here = here.blas if here else ()
    return space.QeFacts(
        cores=cores,
        cores_per_node=int(machine.get("cores_per_node", cores)),
        kpoints=seen.workload.kpoints or 1,
        has_pools=has_pools(deck),
        max_ranks=checked.max_ranks,
        bands=seen.workload.bands,
        planes=grid[2] if grid else None,
        chooses_layout=chooses_layout(_version_there(machine) or seen.version),
        scalapack=here is None or here.is_distributed,
        blas=tuple(library.name for library in libraries_here),
        threaded_blas=tuple(library.name for library in libraries_here if library.threaded),
        threads_by_default=here is None or seen.openmp or blas.uses_threads(dict(here.libraries)),
        transports=_transports(cores) if here else (),
        allocators=_allocators() if here else (),
        sockets=int(machine.get("sockets", 1)),
        oversubscribe=checked.oversubscribe,
        change_path=checked.change_path,
        change_output=checked.change_output,
        shared_nodes=bool(machine.get("shared_nodes")),
        node_memory_bytes=int(machine.get("memory_bytes", 0)),
        shared_bytes=seen.workload.memory_per_rank_bytes or 0,
        inputs=_own_choices(deck),
    )


def _own_choices(deck: Deck) -> dict[str, str]:
    """Return the input's own values of tuned variables, in small letters and with one spelling of each."""
    own = {name: value.lower() for name in _INPUTS_THAT_MATTER if (value := deck.get(name)) is not None}
    own = {name: _SPELLINGS.get(value, value) for name, value in own.items()}
    if own.get("disk_io", "default") == "default" and deck.calculation in BAND_STRUCTURES:
        own["disk_io"] = "medium"
    return own


def _with_copies(facts: space.QeFacts, run_job: RunJob, job: Job) -> space.QeFacts:
    """Return the facts with a rank's memory split into its pool's own and what pools share: run two pools dry."""
    if facts.most_pools < _TWO or facts.cores < _TWO:
        return replace(facts, pool_bytes=facts.shared_bytes, shared_bytes=0)
    output = _run(run_job, replace(job, argv=(*job.argv, "-npool", str(_TWO))))
    pool_bytes = parse(output.stdout).workload.memory_per_rank_bytes if output is not None else None
    if pool_bytes is None:
        return facts
    # With two pools, a rank holds the whole memory of its pool and half of the memory that both share.
    shared = min(max(0, 2 * (facts.shared_bytes - pool_bytes)), facts.shared_bytes)
    return replace(facts, pool_bytes=facts.shared_bytes - shared, shared_bytes=shared)


def _memory_need(facts: space.QeFacts) -> MemoryNeed | None:
    if not facts.node_memory_bytes:
        return None
    return MemoryNeed(partial(space.memory_of_node, facts), facts.node_memory_bytes)


def _version_there(machine: Mapping[str, Any]) -> str | None:
    """Return the version of pw.x on another machine if known: the one here may be older, or missing."""
    version = machine.get("installation", {}).get("pw_version")
    return version if isinstance(version, str) else None


def _allocators() -> tuple[str, ...]:
    library, version = platform.libc_ver()
    if library != "glibc":
        return ()
    try:
        number = tuple(int(part) for part in version.split(".")[:2])
        policy = _HUGE_PAGES.read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and is_transient(error):
            raise  # with fewer values it would be a different study
        return ("keep",)
    return tuple(ALLOCATORS) if number >= _HUGE_PAGES_GLIBC and "[madvise]" in policy else ("keep",)


def _transports(cores: int) -> tuple[str, ...]:
    """Return the ways to exchange data that MPI offers here besides its own."""
    flavour = detect()
    is_known = flavour is not None and flavour.kind == OPEN_MPI and flavour.version[:1] == (4,)
    return tuple(TRANSPORTS) if is_known and flavour is not None and flavour.single_copy and cores > 1 else ()


def _facts(facts: space.QeFacts, program: _Program, seen: PwOutput) -> dict[str, Value]:
    workload = seen.workload
    found: dict[str, Value] = dict(space.rule_facts(facts))
    found |= {
        "pw_version": seen.version or "unknown",
        "openmp": seen.openmp,
        "scalapack": program.is_distributed,
        "system_blas": program.system_blas or "linked",
    }
    return found | workload.sizes


def _size_note(name: str, size: Workload) -> str:
    grid = " x ".join(map(str, size.dense_grid or ())) or "unknown"
    return f"{name}: {size.kpoints} k-points, {size.bands} bands, {size.atoms or '?'} atoms, FFT grid {grid}"


def _length(deck: Deck) -> dict[str, Value]:
    """Return how many self-consistent cycles and iterations a run makes, if the input determines it.

    Moving ions take any number of cycles, and a run to convergence any number of iterations.
    """
    cycles: Mapping[str, int] = {"scf": 1} | dict.fromkeys(BAND_STRUCTURES, 0)
    found: dict[str, Value] = {"scf_cycles": cycles[deck.calculation]} if deck.calculation in cycles else {}
    limit = deck.iteration_limit
    return found | {"scf_iterations": limit} if limit is not None and limit < USUAL_ITERATIONS else found


def _limit_notes(deck: Deck) -> Iterator[str]:
    """Yield a sentence for each limit that the input sets to a run."""
    if (limit := deck.iteration_limit) is not None:
        yield (
            f"the input stops a run after {limit} iterations (electron_maxstep): it need not converge, and its energy "
            "may differ from the default's by the accuracy that pw.x estimates"
        )
    if (limit_s := _stops_after_s(deck)) is not None:
        yield f"a run that takes {limit_s:g} s is stopped by the input (max_seconds), and has failed"
    if deck.calculation in RELAXATIONS and (steps := round(deck.get_float("nstep", 0.0))) > 0:
        yield f"the input moves the ions at most {steps} times (nstep)"


def _stops_after_s(deck: Deck) -> float | None:
    limit_s = deck.get_float("max_seconds", 0.0)
    return limit_s if limit_s > 0.0 else None


def _digest_of(files: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + hashlib.sha256(files[name].read_bytes()).digest())
    return digest.hexdigest()


def _notes(checked: QeOptions, program: _Program, facts: space.QeFacts, seen: PwOutput) -> tuple[str, ...]:
    notes = [
        f"pw.x {seen.version or '(unknown version)'} at {program.path}",
        _size_note(f"input {checked.input}", seen.workload),
    ]
    own = program.system_blas or "the one it was built with"
    if facts.blas:
        notes.append(f"BLAS: {own} by default, and {', '.join(facts.blas)}")
    else:
        notes.append(f"BLAS: only {own}; no other one was found that pw.x can load")
    if not facts.has_threads:
        notes.append("threads are not tuned: neither pw.x nor a BLAS library here uses them")
    if not checked.change_path:
        notes.append("diagonalisation and mixing stay as the input says (change_path = true tunes them, too)")
    return tuple(notes)
