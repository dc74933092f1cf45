"""`autotune suite`: tune several studies, one after another, and say one figure of them all."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.at_end import at_end
from autotune.cli.common import LEFT, STOPPED, displayed, output, print_json
from autotune.cli.completion import suite_files
from autotune.cli.options import (
    DEFAULT_STORAGE,
    AsJson,
    NoiseOption,
    NotifyOption,
    QuietOption,
    SetOption,
    Storage,
    TakeOverOption,
    TimeoutOption,
    TrialsOption,
    UntilOption,
    WaitOption,
    with_options,
)
from autotune.cli.study_options import StudyOptions
from autotune.cli.study_request import requested
from autotune.cli.study_session import PlacedStudy, check_stored, placed, tuned
from autotune.cli.tables import Column, fitted
from autotune.cli.where import CoresOption, LauncherOption, SiteOption, check_commands
from autotune.errors import (
    AutotuneError,
    CannotRunHereError,
    DifferentStudyError,
    ExitCode,
    NothingWorkedError,
    NoTimeError,
    StorageError,
    StudyFileError,
    UnfinishedError,
)
from autotune.execution.signals import pausable
from autotune.storage.address import storage_url
from spaces.parameters.problem import Problem

if TYPE_CHECKING:
    from autotune.display.console import Display
    from autotune.execution.signals import Pause
    from autotune.results.suite import Suite, SuiteMember
    from autotune.results.summary import Summary
    from autotune.studyfile.suite import MemberSection, SuiteFile

_SCORE = Column("score", 2)
_COLUMNS = (Column("study"), Column("weight", 1), Column("over the default"), _SCORE, Column("verdict"))
# What is wrong with one study is no reason to leave out the others.
_OF_ONE_STUDY = (StudyFileError, CannotRunHereError, NothingWorkedError, DifferentStudyError)


@dataclass(frozen=True)
class SuiteOptions:
    """What the user asked of `autotune suite`; None where an option was not given."""

    name: Annotated[
        str,
        typer.Argument(
            metavar="SUITE",
            help="A suite that ships with autotune, or a suite file (./mine.toml).",
            autocompletion=suite_files,
        ),
    ]
    trials: TrialsOption = None
    timeout: TimeoutOption = None
    changes: SetOption = None
    storage: Storage = DEFAULT_STORAGE
    cores: CoresOption = None
    launcher: LauncherOption = None
    site: SiteOption = None
    noise: NoiseOption = None
    wait: WaitOption = False
    take_over: TakeOverOption = False
    until: UntilOption = None
    quiet: QuietOption = False
    notify: NotifyOption = None
    as_json: AsJson = False

    def of_study(self, name: str) -> StudyOptions:
        """Return what is asked of each study."""
        return StudyOptions(
            name,
            trials=self.trials,
            timeout=self.timeout,
            changes=self.changes,
            storage=self.storage,
            cores=self.cores,
            launcher=self.launcher,
            site=self.site,
            noise=self.noise,
            wait=self.wait,
            take_over=self.take_over,
            until=self.until,
        )


@dataclass(frozen=True)
class _Member:
    """A study of the suite, as its options ask for it and where it runs."""

    section: "MemberSection"
    options: StudyOptions
    place: PlacedStudy

    @property
    def name(self) -> str:
        return self.place.request.stored_name


@with_options
def suite(options: SuiteOptions) -> None:
    """Tune several studies, and say one figure of them all.

    Each is tuned and confirmed as by `autotune study`, or goes on. The figure is the geometric mean of their speed-ups.
    The same command again resumes. A study that cannot be tuned does not stop the others, and its exit code is the
    command's.
    """
    from autotune.results.suite import Suite
    from autotune.studyfile.suite import load_suite

    file = load_suite(options.name)
    members = _members(file, options)
    for member in members:
        check_commands(member.place.cluster)
    here = all(member.place.cluster is None for member in members)
    with at_end(options.notify, file.name) as end:
        stopped = STOPPED if here else LEFT.format(name="STUDY")
        with pausable() as pause, displayed(stopped, quiet=options.quiet) as display:
            tuned_members, codes = _tuned(members, pause, display)
        found = Suite(file.name, tuple(tuned_members))
        end.verdict = found.sentence()
        if options.as_json:
            print_json(found.to_dict())
        else:
            _print(found)
        if codes:
            raise typer.Exit(codes[0])


def _members(file: "SuiteFile", options: SuiteOptions) -> list[_Member]:
    """Return the studies, all of them checked before the first one runs.

    Raises:
        StudyFileError: some have errors: all of them at once, each with its place in the suite file.
    """
    from autotune.studyfile.suite import member_path
    from autotune.tomlfiles.reading import wrong

    members: list[_Member] = []
    problems: list[Problem] = []
    for number, section in enumerate(file.members):
        asked = options.of_study(section.study)
        try:
            member = _Member(section, asked, placed(asked, requested(asked)))
        except AutotuneError as error:
            problems.append(Problem(str(error), member_path(number)))
            continue
        if why := _unfit(member, members):
            problems.append(Problem(why, member_path(number)))
        members.append(member)
    if problems:
        raise wrong(f"suite {file.name}", problems, StudyFileError)
    return members


def _unfit(member: _Member, others: Sequence[_Member]) -> str:
    """Say why a study cannot be one of the suite; empty if it can."""
    if member.name in {other.name for other in others}:
        return f"{member.name!r} is in the suite already: to count it more, give it a weight"
    if not member.place.study.has_one_winner:
        looks = "decision table" if member.place.study.decisions is not None else "trade-off"
        return f"{member.name!r} looks for a {looks}: it has no single winner, whose speed-up a mean could have"
    try:
        check_stored(member.options, member.place)
    except DifferentStudyError as error:
        return f"{member.name!r} is {_something_else(error)}: give its file another `name`, or use another --storage"
    return ""


def _something_else(error: DifferentStudyError) -> str:
    return f"stored as something else ({'; '.join(error.differences)})"


def _tuned(
    members: Sequence[_Member], pause: "Pause", display: "Display"
) -> "tuple[list[SuiteMember], list[ExitCode]]":
    """Tune the studies one after another; return how they stand, and the exit codes of those that could not be."""
    from autotune.results.suite import SuiteMember

    found, codes = [], []
    began = datetime.now(UTC).isoformat()
    for number, member in enumerate(members, start=1):
        display.line(f"study {number} of {len(members)}: {member.name}")
        why, summary = "", None
        try:
            summary = tuned(member.options, member.place, pause, display)
        except _OF_ONE_STUDY as error:
            if isinstance(error, NoTimeError) and any(_ran_since(began, other) for other in members[: number - 1]):
                # Others took the time: with as much of it, this one goes on.
                raise UnfinishedError(str(error).partition("\n")[0]) from error
            display.line(str(error))
            codes.append(error.exit_code)
            if isinstance(error, DifferentStudyError):
                why = _something_else(error)  # which says nothing of this study
            else:
                why, summary = str(error).partition("\n")[0], _stored(member)
        if summary is not None and summary.nearest is not None:
            codes.append(ExitCode.NOTHING_FEASIBLE)
        section = member.section
        found.append(SuiteMember(member.name, section.weight, section.reference, summary, why))
        display.line(f"{member.name}: {found[-1].sentence}")
    return found, codes


def _ran_since(began: str, member: _Member) -> bool:
    """Whether a run of a study was made since then."""
    from autotune.storage.stored_study import stored_study

    with suppress(StorageError):
        runs = stored_study(storage_url(member.options.storage), member.name).runs()
        return any(run.started >= began for run in runs)
    return False


def _stored(member: _Member) -> "Summary | None":
    """Return what is stored of a study that could not be tuned this time; None where nothing is."""
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import stored_study

    with suppress(StorageError):
        return summarise(stored_study(storage_url(member.options.storage), member.name))
    return None


def _print(found: "Suite") -> None:
    console, with_score = output(), found.score is not None
    columns = [column for column in _COLUMNS if with_score or column is not _SCORE]
    rows = []
    for member in found.members:
        over = _cell(member.speed_up(found.confidence), ".3f") or "not in the mean"
        score = [_cell(member.score(found.confidence), ".4g")] if with_score else []
        rows.append([member.study, f"{member.weight:g}", over, *score, member.sentence])
    console.print(fitted(columns, rows, console))
    console.print(found.text(), markup=False)


def _cell(interval: "tuple[float, float, float] | None", digits: str) -> str:
    if interval is None:
        return ""
    ratio, low, high = interval
    return f"{ratio:{digits}}x ({low:{digits}} to {high:{digits}})"
