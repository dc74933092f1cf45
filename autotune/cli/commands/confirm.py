"""`autotune confirm`: compare the best trials with the default in fresh runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import output, print_json
from autotune.cli.notify import notify_at_end
from autotune.cli.options import StudyName, WeightsOption, with_options
from autotune.cli.session_options import SessionOptions
from autotune.errors import ExitCode

if TYPE_CHECKING:
    from autotune.coordination.session_settings import SessionSettings
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

    # Setting of_gain to 0 makes a given precision apply to large gains, too.
    overrides = {"pairs": pairs, "max_pairs": max_pairs, "precision": precision, "of_gain": precision and 0.0}
    given = {key: value for key, value in overrides.items() if value is not None}
    # Pairs that the user asks for are made whatever tuning has cost.
    study, settings = session.load_stored(name, given | {"of_tuning": None} if given else given)
    if weights is not None:
        study = weighted_study(study, settings, weights)
    with notify_at_end(session.notify, settings.name) as end:
        with session.open_display(settings) as (paused, display):
            summary = confirm_study(study, paused, display)
            end.verdict = summary.verdict_sentence() or ""
        if session.as_json:
            print_json(summary.to_dict())
        else:
            output().print(summary.best_text())
        if summary.nearest is not None:
            raise typer.Exit(ExitCode.NOTHING_FEASIBLE)


def weighted_study(study: "StudyFile", settings: "SessionSettings", weights: str) -> "StudyFile":
    """Return the study with the user's weights, by which its trade-off is judged from now on.

    Raises:
        AutotuneError: The study has no trade-off, or the weights do not fit it.
    """
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import open_stored_study

    preference = summarise(open_stored_study(settings.url, settings.name)).weighted(weights).preference
    assert study.tradeoff is not None
    assert preference is not None
    tradeoff = study.tradeoff.model_copy(update={"weights": preference.to_dict()})
    return study.model_copy(update={"tradeoff": tradeoff})
