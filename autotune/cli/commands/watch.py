"""`autotune watch`: check with a few fresh runs, from cron or a job, that the winner of a study still wins."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import echo, output, print_json
from autotune.cli.notify import SessionEnd, notify_at_end
from autotune.cli.options import StudyName, with_options
from autotune.cli.session_options import SessionOptions
from autotune.errors import ExitCode
from autotune.storage.address import hide_password, sqlite_path, storage_url
from launchers.own_python import own_python

if TYPE_CHECKING:
    from autotune.comparison.watching.finding import Finding


@dataclass(frozen=True)
class WatchOptions(SessionOptions):
    """The options of a check, whose `--quiet` also hides an unchanged result."""

    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing unless something has changed.")] = False


@with_options
def watch(
    name: StudyName,
    pairs: Annotated[
        int | None,
        typer.Option("--pairs", min=1, help="Number of pairs of runs. Default: by the noise."),
    ] = None,
    record: Annotated[bool, typer.Option("--record", help="Print the checks so far; run nothing.")] = False,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Accept the change as the new state; run nothing."),
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Write the result to this file as JUnit XML."),
    ] = None,
    reframe: Annotated[bool, typer.Option("--reframe", help="Print a ReFrame test that makes this check.")] = False,
    *,
    session: WatchOptions,
) -> None:
    """Check with a few runs that the winner still wins.

    Exit code 10: the winner no longer wins or fails, or winner or default has become slower or faster.
    """
    if junit is not None and not junit.absolute().parent.is_dir():
        msg = f"there is no folder {junit.parent} for {junit.name}; nothing was run"
        raise typer.BadParameter(msg, param_hint="--junit")
    if reframe:
        _print_reframe_test(session.storage, name)
        return
    if accept or record:
        session.check_makes_no_runs("here")
        found = _accept(session.storage, name) if accept else _read_checks(session.storage, name)
        _print(found, as_json=session.as_json, record=record)
        _write_junit(found, junit)
        _exit_if_changed(found)
        return
    from autotune.tuning.session import watch_study

    study, settings = session.load_stored(name)
    with notify_at_end(session.notify, settings.name) as end:
        with session.open_display(settings) as (paused, display):
            found = watch_study(study, paused, display, pairs)
        _report(found, end, quiet=session.quiet, as_json=session.as_json)
        _write_junit(found, junit)
        _exit_if_changed(found)


def _print_reframe_test(storage: str, name: str) -> None:
    from autotune.results.reframe_test import reframe_test
    from autotune.storage.study_store import StudyStore

    url = storage_url(storage)
    path = sqlite_path(url)
    # Leave a server's password out: the test takes it from the environment.
    address = hide_password(url) if path is None else str(path.resolve())
    echo(reframe_test(StudyStore.read(url, name), own_python("autotune"), address), exact=True)


def _report(found: "Finding", end: SessionEnd, *, quiet: bool, as_json: bool) -> None:
    # Send no output of a failed run.
    failed = [f"trial {found.verdict.winner} or the default fails"] if found.failed else []
    end.verdict = "; ".join([*failed, *found.sentences])
    if found.alarms or as_json or not quiet:
        _print(found, as_json=as_json)


def _write_junit(found: "Finding", target: Path | None) -> None:
    if target is None:
        return
    from autotune.comparison.watching.junit import junit
    from autotune.files import replace_file

    try:
        replace_file(target, junit(found))
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror}"
        raise typer.BadParameter(msg, param_hint="--junit") from error


def _exit_if_changed(found: "Finding") -> None:
    if found.alarms:
        raise typer.Exit(ExitCode.CHANGED)


def _print(found: "Finding", *, as_json: bool, record: bool = False) -> None:
    if as_json:
        print_json(found.to_dict())
        return
    for line in [*(found.record() if record else []), *found.lines()]:
        output().print(line)


def _read_checks(storage: str, name: str) -> "Finding":
    from autotune.comparison.watching.watch import Watch
    from autotune.storage.stored_study import open_stored_study

    store = open_stored_study(storage_url(storage), name)
    return Watch.of(store, store.definition.study_file.repeats.statistic).finding()


def _accept(storage: str, name: str) -> "Finding":
    from autotune.comparison.watching.watch import Watch
    from autotune.coordination.upkeep import hold_unused
    from autotune.storage.study_store import StudyStore

    url = storage_url(storage)
    # Hold the study: a check in progress would otherwise be compared with two different states.
    with hold_unused(url, name, "accepted as it is"):
        store = StudyStore.read(url, name, read_only=False)
        Watch.of(store, store.definition.study_file.repeats.statistic).accept(store)
    return _read_checks(storage, name)
