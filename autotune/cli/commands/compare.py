"""`autotune confirm` and `ablate`: compare the winner with the default, and take it apart."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.at_end import at_end
from autotune.cli.common import LEFT, STOPPED, displayed, drawable, if_held, output, print_json
from autotune.cli.options import (
    DEFAULT_STORAGE,
    AsJson,
    Noise,
    NoiseOption,
    NotifyOption,
    QuietOption,
    RunsOption,
    StatusOption,
    Storage,
    StudyName,
    TakeOverOption,
    WaitOption,
    WeightsOption,
)
from autotune.cli.where import CoresOption, as_wide_as, check_commands, cluster_of, machine_and_launcher
from autotune.errors import ExitCode
from autotune.execution.signals import pausable
from autotune.storage.address import storage_url
from autotune.storage.study_lock import IfHeld

if TYPE_CHECKING:
    from autotune.comparison.findings import Ablation
    from autotune.coordination.session_settings import SessionSettings
    from autotune.records.study import Definition
    from autotune.studyfile import StudyFile


def confirm(
    name: StudyName,
    pairs: Annotated[int | None, typer.Option("--pairs", min=3, help="Least number of pairs of runs.")] = None,
    max_pairs: Annotated[int | None, typer.Option("--max-pairs", min=3, help="Most pairs of runs.")] = None,
    precision: Annotated[
        float | None,
        typer.Option("--precision", min=1e-4, help="Stop at this half-width of the interval, relative."),
    ] = None,
    weights: WeightsOption = None,
    storage: Storage = DEFAULT_STORAGE,
    runs: RunsOption = None,
    cores: CoresOption = None,
    noise: NoiseOption = None,
    wait: WaitOption = False,
    take_over: TakeOverOption = False,
    status: StatusOption = None,
    quiet: QuietOption = False,
    notify: NotifyOption = None,
    as_json: AsJson = False,
) -> None:
    """Compare the best trials with the default in fresh runs.

    The runs are interleaved. Runs of earlier confirmations count. Of a trade-off --weights choose the point that is
    compared, in each of its metrics.
    """
    from autotune.tuning.session import confirm_study

    # A precision that is asked for holds for a large gain, too.
    overrides = {"pairs": pairs, "max_pairs": max_pairs, "precision": precision, "of_gain": precision and 0.0}
    given = {key: value for key, value in overrides.items() if value is not None}
    study, settings = stored(name, Place(storage, runs, cores, if_held(wait, take_over), noise), given)
    if weights is not None:
        study = _weighted(study, settings, weights)
    with at_end(notify, settings.name) as end:
        with pausable() as pause, displayed(when_stopped(settings), status, quiet=quiet) as display:
            summary = confirm_study(study, replace(settings, pause=pause), display)
            end.verdict = summary.verdict_sentence() or ""
        if as_json:
            print_json(summary.to_dict())
        else:
            output().print(summary.best_text(), markup=False)
        if summary.nearest is not None:
            raise typer.Exit(ExitCode.NOTHING_FEASIBLE)


def _weighted(study: "StudyFile", settings: "SessionSettings", weights: str) -> "StudyFile":
    """Return the study with the weights that a user states, which say what its trade-off is judged by from now on."""
    from autotune.results.preference import Preference
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import stored_study

    preference = Preference.stated(summarise(stored_study(settings.url, settings.name)).front, weights, settings.name)
    assert study.tradeoff is not None
    tradeoff = study.tradeoff.model_copy(update={"weights": preference.to_dict()})
    return study.model_copy(update={"tradeoff": tradeoff})


def ablate(
    name: StudyName,
    rounds: Annotated[int | None, typer.Option("--rounds", min=3, help="Number of runs of each variant.")] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", help="File for the picture (.png, .svg, .pdf); by default beside the runs.", callback=drawable
        ),
    ] = None,
    weights: WeightsOption = None,
    storage: Storage = DEFAULT_STORAGE,
    runs: RunsOption = None,
    cores: CoresOption = None,
    noise: NoiseOption = None,
    wait: WaitOption = False,
    take_over: TakeOverOption = False,
    status: StatusOption = None,
    quiet: QuietOption = False,
    notify: NotifyOption = None,
    as_json: AsJson = False,
) -> None:
    """Measure what each changed option of the winner is worth.

    Each option is measured alone on the default, and by its absence from the winner, with the options that the rules
    tie it to. Options that do not help are dropped. Of a trade-off --weights choose the point that is taken apart, and
    only what helps in none of its metrics is dropped.
    """
    from autotune.cli.ablations import conclusion, described
    from autotune.pictures.ablation import ablation as chart_of
    from autotune.pictures.files import save
    from autotune.storage.study_store import StudyStore
    from autotune.tuning.session import ablate_study

    study, settings = stored(
        name, Place(storage, runs, cores, if_held(wait, take_over), noise), {"pairs": rounds} if rounds else {}
    )
    if weights is not None:
        study = _weighted(study, settings, weights)
    with at_end(notify, settings.name) as end:
        with pausable() as pause, displayed(when_stopped(settings), status, quiet=quiet) as display:
            ablation = ablate_study(study, replace(settings, pause=pause), display, study.verdict.pairs)
        end.verdict = conclusion(ablation) if ablation is not None else ""
        if as_json:
            print_json(described(ablation) if ablation else None)
        if ablation is None:
            _nothing_to_take_apart(settings, as_json=as_json)
            return
        definition = StudyStore.read(settings.url, name).definition
        if not as_json:
            _print_effects(ablation, definition)
        chart = chart_of(ablation, definition.target, definition.metrics)
        path = picture or (None if as_json else settings.runs / "ablation.png")
        if chart is not None and path is not None:
            save(replace(chart, title=f"study {name}: what each option is worth"), path)
            if not as_json:
                output().print(f"picture: {path}", markup=False)


def _print_effects(ablation: "Ablation", definition: "Definition") -> None:
    from autotune.cli.ablations import conclusion, table_of
    from autotune.pictures.ablation import bars, lines

    for metric, one in ablation.readings(definition.target, definition.metrics):
        output().print(table_of(one, metric.name if ablation.further else None))
        for effect in one.effects:
            if effect.why:
                output().print(f"{effect.name}: {effect.why}", markup=False)
        for line in lines(bars(one, metric), metric):
            output().print(line, markup=False)
    output().print(conclusion(ablation), markup=False)


def _nothing_to_take_apart(settings: "SessionSettings", *, as_json: bool) -> None:
    """Say why a study has no winner; where nothing keeps the limits, end as the study did."""
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import stored_study

    summary = summarise(stored_study(settings.url, settings.name))
    infeasible = summary.nearest is not None
    said = summary.verdict_sentence() if infeasible or summary.tradeoff is not None else None
    why = (said or "no configuration of this study is better than the default").rstrip(".")
    if not as_json:
        output().print(f"{why}: there is nothing to take apart", markup=False)
    if infeasible:
        raise typer.Exit(ExitCode.NOTHING_FEASIBLE)


def when_stopped(settings: "SessionSettings") -> str:
    """Return what is said when the session is interrupted."""
    return STOPPED if settings.queue is None else LEFT.format(name=settings.name)


@dataclass(frozen=True)
class Place:
    """Where a comparison is kept and run, and what is done about noise there, as its options say."""

    storage: str
    runs: Path | None = None
    cores: str | None = None
    held: IfHeld = IfHeld.LEAVE
    noise: Noise | None = None


def stored(name: str, place: Place, verdict: dict[str, Any]) -> "tuple[StudyFile, SessionSettings]":
    """Return the stored study of that name, with changes of its `verdict`, and where it runs."""
    from autotune.studyfile import parse
    from autotune.tuning.session import stored_study

    table = stored_study(storage_url(place.storage), name).model_dump(mode="json")
    section = table["verdict"] | verdict
    # --pairs above the study's max_pairs raises it.
    section["max_pairs"] = (
        max(section["max_pairs"], section["pairs"]) if "max_pairs" not in verdict else verdict["max_pairs"]
    )
    study = parse(table | {"verdict": section}, source="the options")
    return settings_of(study, name, place)


def settings_of(
    study: "StudyFile", name: str, place: Place, file: Path | None = None
) -> "tuple[StudyFile, SessionSettings]":
    """Return a study as it runs where it runs, and where that is."""
    from autotune.coordination.session_settings import SessionSettings, default_runs

    if place.noise is not None:
        study = study.model_copy(update={"noise": study.noise.model_copy(update={"mode": place.noise.value})})
    url, cluster = storage_url(place.storage), cluster_of(study)
    check_commands(cluster)
    machine, launcher, facts = machine_and_launcher(cluster, place.cores, name)
    folder = place.runs or default_runs(url, name)
    settings = SessionSettings(url, name, folder, machine, launcher, file, if_held=place.held, facts=facts)
    return as_wide_as(study, cluster), settings
