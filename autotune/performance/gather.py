"""Everything that was measured: the trials of studies, what was imported, and what ships with autotune."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from autotune.performance.measured import Facts, Measured, Setting
from autotune.performance.places import described, place
from autotune.performance.shipped import shipped
from autotune.records import Definition, State, TrialRecord
from autotune.standings import Standings
from autotune.studyfile import RepeatsSection
from objectives.base import FailureKind
from objectives.digest import text_digest

if TYPE_CHECKING:
    from autotune.search.store import StudyStore

_GENERIC = frozenset({"command", "training"})
"""Objectives that run whatever a study says: the study's name tells which program that is."""

_OF_MACHINE = frozenset({"cores", "cores_per_node", "nodes", "sockets", "memory_bytes"})
_NAMES = frozenset({"host", "system"})
_DIGEST = 8


def measurements(urls: Iterable[str], program: str | None = None) -> list[Measured]:
    """Return what is known of a program, or of all: from studies in storages, imported, and shipped.

    A trial counts with the value that its study gives it, a capped one with its bound, a failed one as a failure.
    Replays are left out, and trials that were stopped early, are not finished, or failed through the machine's fault.

    Raises:
        StorageError: a storage cannot be read.
    """
    names: dict[tuple[str, str], str] = {}
    found = [one for url in dict.fromkeys(urls) for one in _stored(url, names)]
    found += shipped()
    return [one for one in found if program in (None, one.setting.program)]


def study_measurements(
    name: str, definition: Definition, trials: Iterable[TrialRecord], workload: str | None = None
) -> list[Measured]:
    """Return what a study measured; `workload` is what its workload is called elsewhere already."""
    setting = setting_of(name, definition, workload)
    repeats = RepeatsSection(**definition.study.get("repeats", {}))
    judged = [_without_faults(trial) for trial in trials]
    standings = Standings.of(judged, definition.target, repeats.statistic)
    default = standings.default
    found = (_measured(setting, trial, standings) for trial in judged)
    return [
        replace(one, default=default is not None and one.configuration == default.configuration)
        for one in found
        if one is not None
    ]


def program_of(objective: str, study: str) -> str:
    """Return the name of the program that a study tunes; of the generic objectives the study's own name tells it."""
    return study if objective in _GENERIC else objective


def setting_of(name: str, definition: Definition, workload: str | None = None) -> Setting:
    """Return the setting of the study called `name`."""
    machine, machine_facts = _machine(definition.machine)
    own = str(definition.study.get("name") or name)
    return Setting(
        program=program_of(definition.objective, own),
        machine=machine,
        workload=workload or f"{own} {_identity(definition)[:_DIGEST]}",
        metric=definition.target,
        machine_facts=machine_facts,
        workload_facts={key: value for key, value in definition.facts.items() if key not in _OF_MACHINE},
        source=f"study {name}",
    )


def _stored(url: str, names: dict[tuple[str, str], str]) -> Iterator[Measured]:
    """Yield what one storage holds; `names` are those of the workloads that were met, by program and identity."""
    from autotune.search.library import Library  # noqa: PLC0415  importing Optuna takes a while
    from autotune.search.store import StudyStore, study_names  # noqa: PLC0415

    library = Library.read(url)
    for name in study_names(url) if library.has_studies() else ():
        store = StudyStore.read_if_ours(url, name)
        if store is not None and not store.definition.replay:
            yield from _of_study(store, names)
    for one in library.measurements():
        yield _described(one)


def _of_study(store: "StudyStore", names: dict[tuple[str, str], str]) -> list[Measured]:
    definition = store.definition
    first = setting_of(store.name, definition)
    workload = names.setdefault((first.program, _identity(definition)), first.workload)
    return study_measurements(store.name, definition, store.trials(), workload)


def _without_faults(trial: TrialRecord) -> TrialRecord:
    """Return a trial without the runs that say nothing of its configuration."""
    runs = tuple(run for run in trial.runs if run.outcome.failure is not FailureKind.INFRASTRUCTURE_ERROR)
    return replace(trial, runs=runs)


def _measured(setting: Setting, trial: TrialRecord, standings: Standings) -> Measured | None:
    runs = len(trial.runs)
    match trial.state:
        case State.COMPLETE:
            return Measured(setting, trial.configuration, standings.value(trial), runs=runs)
        case State.CAPPED:
            return Measured(setting, trial.configuration, bound=standings.bound(trial), runs=runs)
        case State.FAILED:
            failure = trial.failure
            assert failure is not None
            assert failure.failure is not None
            words = f"{failure.failure.value}: {failure.message}"
            return Measured(setting, trial.configuration, runs=runs, failure=words)
        case _:
            return None


def _identity(definition: Definition) -> str:
    return text_digest(repr(sorted(definition.identity.items())))


def _machine(machine: Mapping[str, object]) -> tuple[str, Facts]:
    """Return the name and the facts of the machine of a study: those of its description where there is one."""
    cores = machine.get("cores")
    host = machine.get("host")
    known = described(host) if isinstance(host, str) else None
    own = machine.get("facts")
    told = {name: value for name, value in machine.items() if name not in _NAMES}
    numbers = {name: value for name, value in told.items() if isinstance(value, int | float | str | bool)}
    facts: Facts = own if isinstance(own, Mapping) else known[1] if known else numbers
    if known is None:
        return f"{machine.get('cpu_model')}, {cores} cores", dict(facts)
    # A study may use a part of a machine.
    is_whole = known[1].get("cores") in {None, cores}
    return (known[0] if is_whole else f"{known[0]}, {cores} cores"), dict(facts)


def _described(one: Measured) -> Measured:
    """Return a measurement with what is known of its machine by now, if it was not when it was imported."""
    if set(one.setting.machine_facts) - {"nodes"}:
        return one
    machine, facts = place(one.setting.machine, one.setting.nodes)
    return replace(one, setting=replace(one.setting, machine=machine, machine_facts=facts))
