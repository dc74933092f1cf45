"""Whether a study can go on with what is stored under its name, as far as that is known before anything runs."""

from dataclasses import replace

from autotune.coordination.session_settings import SessionSettings
from autotune.errors import CannotRunHereError, StorageError, StudyFileError
from autotune.lockfile import temporary_folder
from autotune.machines.provenance import session_facts
from autotune.planning.prepare import prepare
from autotune.records.study import Definition
from autotune.storage.readable import check_same
from autotune.storage.stored_study import stored_study
from autotune.studyfile import StudyFile
from autotune.tuning.anew import differences_to_forget
from objectives import registry


def check_continuing(study: StudyFile, settings: SessionSettings) -> None:
    """Check that a session can go on with what is stored, if anything is; nothing runs, and nothing is written.

    Raises:
        DifferentStudyError: the study there is about something else.
    """
    try:
        stored = stored_study(settings.url, settings.name).definition
    except StorageError:
        return  # nothing is there; what cannot be read is refused by the session
    # Where only a dry run tells the rest, or something is missing, the session says it.
    definition = _without_a_run(study, settings) or replace(stored, objective=study.objective)
    begins_anew = registry.runs(study.objective) == "launched" and differences_to_forget(
        settings.url, settings.name, definition
    )
    if not begins_anew:
        check_same(settings.url, settings.name, stored, definition)


def _without_a_run(study: StudyFile, settings: SessionSettings) -> Definition | None:
    """Return what a study is about; None if it cannot be planned, or takes a dry run."""
    facts = session_facts(settings.machine, settings.launcher.flavour, settings.file, here=settings.queue is None)
    with temporary_folder("plan") as folder:
        try:
            prepared = prepare(
                study, settings.machine, settings.launcher, folder, facts.identity, settings.facts, _run_nothing
            )
        except (CannotRunHereError, StudyFileError):
            return None
    return prepared.definition


def _run_nothing() -> None:
    msg = "a dry run is made when its session has begun"
    raise CannotRunHereError(msg)
