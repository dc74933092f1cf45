"""Everything that was measured: the trials of studies, what was imported, and what ships with autotune."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from autotune.machines.this_machine import FACTS
from autotune.performance.measurements.machine_names import described, place
from autotune.performance.measurements.shipped import shipped
from autotune.records.measurement import Facts, Measured, Setting
from autotune.records.study import Definition, State, TrialRecord
from autotune.statistics.standings import Standings
from autotune.studyfile import RepeatsSection
from objectives import registry
from objectives.base import FailureKind
from objectives.digest import text_digest

_NAMES = frozenset({"host", "system"})
_DIGEST = 8


def measurements(urls: Iterable[str], program: str | None = None) -> list[Measured]:
    """Return what is known of a program, or of all: from studies in storages, imported, and shipped.

    A trial counts with the value that its study gives it, a capped one with its bound, a failed one as a failure.
    Replays are left out, and trials that were stopped early, are not finished, or failed through the machine's fault.

    Raises:
        StorageError: a storage cannot be read.
    """
    found = [one for url in dict.fromkeys(urls) for one in _stored(url)]
    found += shipped()
    return [one for one in found if program in (None, one.setting.program)]


def study_measurements(name: str, definition: Definition, trials: Iterable[TrialRecord]) -> list[Measured]:
    """Return what a study measured."""
    setting = setting_of(name, definition)
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
    return study if registry.is_generic(objective) else objective


def workload_of(program: str, facts: Facts, identity: Mapping[str, str]) -> tuple[str, Facts]:
    """Return the name and the facts of a program's workload: problems of the same size are the same.

    `facts` are those of the problem, beside which there may be some of the machine. Of a problem without any its
    `identity` tells it from others.
    """
    own = {name: value for name, value in facts.items() if name not in FACTS}
    return f"{program} {text_digest(repr(sorted((own or identity).items())))[:_DIGEST]}", own


def with_installation(machine: str, facts: Facts, installation: Facts) -> tuple[str, Facts]:
    """Return the name and the facts of a machine with a program's installation: builds differ as machines do."""
    words = [value for value in installation.values() if isinstance(value, str)]
    return ", ".join([machine, *words]), {**facts, **installation}


def setting_of(name: str, definition: Definition) -> Setting:
    """Return the setting of the study called `name`."""
    own = str(definition.study.get("name") or name)
    machine, machine_facts = with_installation(*machine_of(definition.machine), definition.installation_facts)
    program = program_of(definition.objective, own)
    workload, workload_facts = workload_of(program, definition.workload_facts, definition.identity)
    return Setting(
        program=program,
        machine=machine,
        workload=workload,
        metric=definition.target,
        machine_facts=machine_facts,
        workload_facts=workload_facts,
        source=f"study {name}",
    )


def _stored(url: str) -> Iterator[Measured]:
    """Yield what one storage holds."""
    from autotune.storage.measurement_store import MeasurementStore  # noqa: PLC0415  importing Optuna takes a while
    from autotune.storage.study_store import StudyStore, study_names  # noqa: PLC0415

    library = MeasurementStore.read(url)
    for name in study_names(url) if library.has_studies() else ():
        store = StudyStore.read_if_ours(url, name)
        if store is not None and not store.definition.replay:
            yield from study_measurements(store.name, store.definition, store.trials())
    for one in library.measurements():
        yield _described(one)


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


def machine_of(machine: Mapping[str, Any]) -> tuple[str, Facts]:
    """Return the name and the facts of a machine that a study kept: those of its description where there is one."""
    own = machine.get("facts")
    cores = machine.get("cores")
    host = machine.get("host")
    known = described(host) if isinstance(host, str) else None
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
