"""Beginning anew: a study of which nothing worked may become one about something else, under the same name."""

from collections.abc import Callable

from autotune.errors import StorageError
from autotune.records.study import Definition
from autotune.storage.stored_study import stored_study
from autotune.storage.studies import StoredStudies
from autotune.storage.study_store import StudyStore


def begin_anew(url: str, name: str, definition: Definition, say: Callable[[str], None]) -> None:
    """Forget the study that is stored if it is about something else, and no run of it gave anything to compare with.

    Who mends a command that failed goes on under the same name.
    """
    differences = _differences_to_forget(url, name, definition)
    if differences:
        StoredStudies(url).remove(name)
        what = ", ".join(difference.partition(":")[0] for difference in differences)
        say(f"study {name!r} begins anew: it has changed ({what}), and nothing valid was measured before")


def _differences_to_forget(url: str, name: str, definition: Definition) -> list[str]:
    """Return how the study that is stored differs, if it gives way to one of this definition; else nothing."""
    try:
        stored = stored_study(url, name)
    except StorageError:
        return []  # nothing is there; what cannot be read is refused by who opens it
    differences = stored.definition.differences(definition)
    if not differences or any(run.outcome.failure is None for run in stored.runs()):
        return []
    if StudyStore.read(url, name).leases().all():
        return []  # jobs of it are in a queue
    return differences
