"""All measurements: the trials of studies, imported ones, and those that ship with autotune."""

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

from autotune.machines.this_machine import FACTS
from autotune.performance.measurements.machine_names import find_machine_facts, machine_of
from autotune.performance.measurements.repeats import nearest_parts
from autotune.performance.measurements.shipped import load_shipped_measurements
from autotune.records.limit import metrics_of_run
from autotune.records.measurement import Facts, Judged, Measured, Setting
from autotune.records.series import SIZE
from autotune.records.study import Run, State, TrialRecord
from autotune.scheduling.equivalence import Equivalence
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.damage import left_out_if_damaged
from autotune.storage.readable_study import stored_verdict
from autotune.studyfile.definition import Definition
from autotune.studyfile.sizes import is_size
from launchers.software.digest import text_digest
from objectives import registry
from objectives.base import PARTS
from objectives.program_marks import program_marks
from spaces import Value

_DIGEST = 8


def measurements(urls: Iterable[str]) -> list[Measured]:
    """Return the measurements of all programs: stored, imported and shipped.

    A trial counts with its value, a capped trial with its bound, and a failed trial as a failure. A measurement that
    was imported from several sources counts once. Left out are replays, and trials that are unfinished, were stopped
    early or at their study's memory limit, or failed through the machine's fault.

    Args:
        urls: The addresses of the storages.

    Raises:
        StorageError: A storage cannot be read.
    """
    storages = list(dict.fromkeys(urls))
    everything = [measurement for url in storages for measurement in _of_studies(url)]
    imported = [measurement for url in storages for measurement in _imports_of(url)]
    known: dict[Hashable, Measured] = {}
    for measurement in (*load_shipped_measurements(), *imported):
        known.setdefault(measurement.content, measurement)
    return [*everything, *known.values()]


def study_measurements(
    name: str, definition: Definition, trials: Iterable[TrialRecord], verdict: Verdict | None = None
) -> list[Measured]:
    """Return the measurements of a study, with the judgements of its `verdict`, if there is one."""
    setting = setting_of(name, definition)
    repeats = definition.study_file.repeats
    judged = [_without_faults(trial) for trial in trials]
    standings = Standings.of(judged, definition.target, repeats.statistic)
    default = standings.default
    idle = tuple(sorted(Equivalence.of(judged, None).inert))
    judgement = _judgement(verdict, standings)
    described = (_measurement_of_trial(setting, trial, standings, judgement.get(trial.number)) for trial in judged)
    return [
        replace(
            measurement,
            default=default is not None and measurement.configuration == default.configuration,
            idle=idle,
        )
        for measurement in described
        if measurement is not None
    ]


def program_of(objective: str, study: str, *, mixed: bool = False) -> str:
    """Return the name of the program that a study tunes: the study's name for generic objectives and for a mix."""
    return study if mixed or registry.is_generic(objective) else objective


def marks_of(objective: str, identity: Mapping[str, str]) -> tuple[str, ...]:
    """Return the marks of what a study runs; none for an objective that is a program itself."""
    return program_marks(identity) if registry.is_generic(objective) else ()


def workload_of(program: str, facts: Facts, identity: Mapping[str, str]) -> tuple[str, Facts]:
    """Return the name and the facts of a program's workload; problems of the same size have the same name.

    Args:
        program: The program's name.
        facts: The facts of the problem; facts of the machine among them are left out.
        identity: Identifies the problem if the only known sizes are those that a study file states.
    """
    own = {name: value for name, value in facts.items() if name not in FACTS}
    is_known = any(not is_size(name, identity) for name in own)
    return f"{program} {text_digest(repr(sorted((own if is_known else identity).items())))[:_DIGEST]}", own


def identity_of(identity: Mapping[str, str]) -> str:
    """Return a digest of the program's version and its input, which comparable measurements share."""
    return text_digest(repr(sorted(identity.items())))[:_DIGEST]


def with_installation(machine: str, facts: Facts, installation: Facts) -> tuple[str, Facts]:
    """Return the name and the facts of a machine with a program's installation; builds differ like machines."""
    words = [value for value in installation.values() if isinstance(value, str)]
    return ", ".join([machine, *words]), {**facts, **installation}


def setting_of(name: str, definition: Definition) -> Setting:
    """Return the setting of the study with this name."""
    study = definition.study_file
    machine, machine_facts = with_installation(*machine_of(definition.machine), definition.installation_facts)
    program = program_of(definition.objective, study.name or name, mixed=study.is_mix)
    workload, workload_facts = workload_of(program, definition.workload_facts, definition.identity)
    return Setting(
        program=program,
        machine=machine,
        workload=workload,
        metric=definition.target,
        machine_facts=machine_facts,
        workload_facts=workload_facts,
        source=f"study {name}",
        identity=identity_of(definition.identity),
        marks=marks_of(definition.objective, definition.identity),
        input=_input_of(definition.options, definition.identity),
    )


def _input_of(options: Mapping[str, Any], identity: Mapping[str, str]) -> str:
    """Return a digest of a study's input: of the files that its identity names as such, or else of its options."""
    named = {key: digest for key, digest in identity.items() if key.partition("[")[0] == "input"}
    return text_digest(json.dumps(named or dict(options), sort_keys=True))[:_DIGEST]


def _of_studies(url: str) -> Iterator[Measured]:
    """Yield the measurements of the studies in one storage."""
    from autotune.storage.measurement_store import MeasurementStore  # noqa: PLC0415  importing Optuna takes a while
    from autotune.storage.study_store import StudyStore, study_names  # noqa: PLC0415

    for name in study_names(url) if MeasurementStore.read(url).has_studies() else ():
        found: list[Measured] = []
        with left_out_if_damaged(name):
            store = StudyStore.read_if_ours(url, name)
            if store is not None and not store.definition.replay:
                trials = store.trials()
                found += study_measurements(store.name, store.definition, trials, stored_verdict(store))
                found += _rightsizing_measurements(setting_of(store.name, store.definition), store.runs(), trials)
        yield from found


def _imports_of(url: str) -> Iterator[Measured]:
    """Yield the measurements that were imported into one storage."""
    from autotune.storage.measurement_store import MeasurementStore  # noqa: PLC0415  importing Optuna takes a while

    for measurement in MeasurementStore.read(url).measurements():
        yield _with_machine_facts(measurement)


def _rightsizing_measurements(
    setting: Setting, runs: Iterable[Run], trials: Iterable[TrialRecord]
) -> Iterator[Measured]:
    """Yield the measurements of right-sizing runs, which belong to no trial."""
    tried = {frozenset(trial.configuration.items()) for trial in trials}
    values: dict[frozenset[tuple[str, Value]], list[float]] = defaultdict(list)
    for run in runs:
        key = frozenset(run.configuration.items())
        if run.series == SIZE and run.outcome.complete and key not in tried:
            values[key].append(run.outcome.metrics[setting.metric.name])
    for key, found in values.items():
        yield Measured(setting, dict(key), median(found), runs=len(found))


def _without_faults(trial: TrialRecord) -> TrialRecord:
    """Return a trial without the runs that failed through the machine's fault or were stopped by the study."""
    runs = tuple(run for run in trial.runs if not (run.outcome.retryable or run.outcome.over_memory_limit))
    return replace(trial, runs=runs)


def _judgement(verdict: Verdict | None, standings: Standings) -> dict[int, Judged]:
    """Return a verdict's judgements of its winner and of the trials that it was chosen from, by trial number."""
    default = standings.baseline
    if verdict is None or default is None or not (verdict.known or verdict.unreliable):
        return {}
    metric, trials = standings.metric, standings.trials
    if verdict.winner not in trials:
        return {}
    interval = verdict.interval(metric) if verdict.known else None
    winner = trials[verdict.winner].configuration
    judged = Judged(winner, default.configuration, verdict.significant(metric), verdict.confidence, interval)
    return dict.fromkeys((verdict.winner, *verdict.candidates), judged)


def _measurement_of_trial(
    setting: Setting, trial: TrialRecord, standings: Standings, judged: Judged | None
) -> Measured | None:
    runs = len(trial.runs)
    match trial.state:
        case State.COMPLETE:
            value, name = standings.value(trial), setting.metric.name
            runs_with_parts = (
                (outcome.metrics.get(name), outcome.details.get(PARTS, {})) for outcome in trial.outcomes
            )
            parts, others = nearest_parts(value, runs_with_parts), _other_metrics(trial, name)
            return Measured(
                setting,
                trial.configuration,
                standings.undisturbed_value(trial),
                runs=runs,
                parts=parts,
                told=others,
                error=standings.effects.error(trial.number),
                degrees=standings.effects.degrees,
                judged=judged,
            )
        case State.CAPPED:
            return Measured(setting, trial.configuration, bound=standings.undisturbed_value(trial), runs=runs)
        case State.FAILED:
            failure = trial.failure
            assert failure is not None
            assert failure.failure is not None
            words = f"{failure.failure.value}: {failure.message}"
            return Measured(setting, trial.configuration, runs=runs, failure=words)
        case _:
            return None


def _other_metrics(trial: TrialRecord, target: str) -> dict[str, float]:
    """Return the medians of a complete trial's metrics other than the optimised one."""
    runs = [dict(metrics_of_run(outcome)) for outcome in trial.outcomes if outcome.complete]
    names = dict.fromkeys(name for run in runs for name in run if name != target)
    return {name: median(run[name] for run in runs if name in run) for name in names}


def _with_machine_facts(measurement: Measured) -> Measured:
    """Return a measurement with the facts of its machine, which may have become known after the import."""
    if set(measurement.setting.machine_facts) - {"nodes"}:
        return measurement
    setting = measurement.setting
    machine, facts = find_machine_facts(setting.machine, setting.nodes if setting.nodes_known else None)
    return replace(measurement, setting=replace(setting, machine=machine, machine_facts=facts))
