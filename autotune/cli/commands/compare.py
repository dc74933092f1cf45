"""`autotune confirm` and `ablate`: compare the winner with the default, and take it apart."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.at_end import at_end
from autotune.cli.common import output, print_json
from autotune.cli.options import PictureOption, StudyName, WeightsOption, with_options
from autotune.cli.session_options import SessionOptions
from autotune.errors import ExitCode

if TYPE_CHECKING:
    from autotune.comparison.findings import Ablation
    from autotune.coordination.session_settings import SessionSettings
    from autotune.records.study import Definition
    from autotune.studyfile import StudyFile


@with_options
def confirm(
    name: StudyName,
    pairs: Annotated[
        int | None, typer.Option("--pairs", min=3, help="Make at least this number of pairs of runs.")
    ] = None,
    max_pairs: Annotated[
        int | None, typer.Option("--max-pairs", min=3, help="Make at most this number of pairs of runs.")
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option("--precision", min=1e-4, help="Stop at this relative half-width of the interval."),
    ] = None,
    weights: WeightsOption = None,
    *,
    session: SessionOptions,
) -> None:
    """Compare the best trials with the default in fresh runs.

    Runs of earlier confirmations count.
    """
    from autotune.tuning.session import confirm_study

    # A precision that is asked for holds for a large gain, too.
    overrides = {"pairs": pairs, "max_pairs": max_pairs, "precision": precision, "of_gain": precision and 0.0}
    given = {key: value for key, value in overrides.items() if value is not None}
    study, settings = session.of_stored(name, given)
    if weights is not None:
        study = _weighted(study, settings, weights)
    with at_end(session.notify, settings.name) as end:
        with session.displayed(settings) as (paused, display):
            summary = confirm_study(study, paused, display)
            end.verdict = summary.verdict_sentence() or ""
        if session.as_json:
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


@with_options
def ablate(
    name: StudyName,
    rounds: Annotated[int | None, typer.Option("--rounds", min=3, help="Number of runs of each variant.")] = None,
    picture: PictureOption = None,
    weights: WeightsOption = None,
    *,
    session: SessionOptions,
) -> None:
    """Measure what each changed option of the winner gains.

    Each option is measured alone on the default, and by its absence from the winner. Options that do not help are
    dropped.
    """
    from autotune.cli.ablations import conclusion, described
    from autotune.pictures.ablation import ablation as chart_of
    from autotune.pictures.files import save
    from autotune.storage.study_store import StudyStore
    from autotune.tuning.session import ablate_study

    study, settings = session.of_stored(name, {"pairs": rounds} if rounds else None)
    if weights is not None:
        study = _weighted(study, settings, weights)
    with at_end(session.notify, settings.name) as end:
        with session.displayed(settings) as (paused, display):
            ablation = ablate_study(study, paused, display, study.verdict.pairs)
        end.verdict = conclusion(ablation) if ablation is not None else ""
        if session.as_json:
            print_json(described(ablation) if ablation else None)
        if ablation is None:
            _nothing_to_take_apart(settings, as_json=session.as_json)
            return
        definition = StudyStore.read(settings.url, name).definition
        if not session.as_json:
            _print_effects(ablation, definition)
        chart = chart_of(ablation, definition.target, definition.metrics)
        path = picture or (None if session.as_json else settings.runs / "ablation.png")
        if chart is not None and path is not None:
            save(replace(chart, title=f"study {name}: what each option is worth"), path)
            if not session.as_json:
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
