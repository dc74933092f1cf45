"""Read the options of `autotune study`, and check them before anything runs."""

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from autotune.batch.launcher_names import LOCAL
from autotune.cli.common import duration_s, if_held
from autotune.cli.packages import require_modules
from autotune.cli.study_options import StudyOptions, Switch
from autotune.errors import StudyFileError
from autotune.locks import IfHeld
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.storage.readable_study import ReadableStudy
    from autotune.studyfile import StudyFile

ON_RAY = "--ray-address runs on the nodes of a Ray cluster: leave --launcher, --site and --cores out"


@dataclass(frozen=True)
class StudyRequest:
    """A checked command line of `study`.

    Attributes:
        study: The study file with the changes of the command line.
        stored_name: The study's name in the storage.
        if_held: What to do if another process runs the study.
        ends_at: The time of `--until`, in seconds since 1970; None if it is not given.
    """

    study: "StudyFile"
    stored_name: str
    if_held: IfHeld
    ends_at: float | None


def read_request(options: StudyOptions) -> StudyRequest:
    """Check the options of `study` that do not depend on where it will run, and load the study file.

    Raises:
        typer.BadParameter: An option is wrong.
        StudyFileError: The study file is wrong, or options contradict each other.
    """
    from autotune.studyfile import NAME

    overrides: dict[str, Any] = {
        "budget.trials": _trials(options.trials) if options.trials is not None else None,
        "budget.timeout_s": duration_s(options.timeout, "--timeout") if options.timeout else None,
        "budget.workers": options.workers,
        "noise.mode": options.noise,
        "verdict.nodes": options.nodes_at_least,
        "sampler.name": options.sampler,
        "sampler.seed": options.seed,
        **launcher_settings(options.launcher, options.site),
        "sampler.warm_start": None if options.warm_start is None else str(options.warm_start is Switch.ON).lower(),
    }
    held = if_held(options.wait, options.take_over)
    if not options.name:
        msg = "give a study that ships (qe), a study file (./mine.toml), or a command after --, with values to try"
        raise typer.BadParameter(msg, param_hint="STUDY")
    _refuse_stored_name(options.name, storage_url(options.storage))
    chosen = choose(options.name, options.changes, options.input_file, overrides)
    _check_ray(options)
    stored_name = options.study_name or chosen.name
    if not re.fullmatch(NAME, stored_name):
        msg = f"--name {stored_name!r}: a study's name has letters, digits, '.', '_' and '-' only"
        raise StudyFileError(msg)
    return StudyRequest(chosen, stored_name, held, None if options.until is None else _until(options.until))


def launcher_settings(launcher: str | None, site: str | None) -> dict[str, str | None]:
    """Return the keys of a study file that `--launcher` and `--site` set.

    Raises:
        StudyFileError: The two options contradict each other.
    """
    if launcher != LOCAL:
        return {"launcher.kind": launcher, "launcher.site": site}
    if site is not None:
        msg = f"--launcher local runs on this machine, --site {site} uses a batch system: leave one of the two out"
        raise StudyFileError(msg)
    # Set the whole table, so that it overrides the study file's site, too.
    return {"launcher": '{ kind = "local" }'}


def choose(
    name: str,
    changes: list[str] | None,
    input_file: str | None,
    overrides: dict[str, Any] | None = None,
    facts_file: str | None = None,
    url: str | None = None,
) -> "StudyFile":
    """Load a study and apply the options to it.

    A study with an input of the user's gets a name of its own. The site is stored with an absolute path, because later
    commands may start in another folder.

    Args:
        name: A study that ships, the path of a study file, or with `url` the name of a stored study.
        changes: `--set` options, each KEY=VALUE.
        input_file: The user's own input of the program.
        overrides: Further values by key; None leaves the study file's value.
        facts_file: A TOML file with facts of the problem.
        url: The address of the storage whose studies may be named.

    Raises:
        StudyFileError: The study file or an option is wrong.
    """
    from autotune import studyfile
    from autotune.batch.site_file import absolute_site
    from objectives import registry
    from objectives.base import PlanError

    given = [f"{key}={value}" for key, value in (overrides or {}).items() if value is not None]
    stored = None if url is None else find_stored(url, name)
    if stored is None:
        loaded = studyfile.load(studyfile.find(name), [*(changes or []), *given])
    else:
        changed = [*(changes or []), *given]
        loaded = studyfile.apply_overrides(stored.definition.study, changed, f"the stored study {name}")
    if loaded.launcher.site is not None:
        launcher = loaded.launcher.model_copy(update={"site": absolute_site(loaded.launcher.site)})
        loaded = loaded.model_copy(update={"launcher": launcher})
    try:
        options = loaded.options
        if facts_file is not None:
            if not Path(facts_file).expanduser().is_file():
                msg = f"--facts {facts_file}: no such file"
                raise StudyFileError(msg)
            options = registry.with_facts(loaded.objective, options, facts_file, has_input=input_file is not None)
        if input_file is None:
            return loaded.model_copy(update={"options": options})
        options = registry.with_own_input(loaded.objective, options, input_file)
    except PlanError as error:
        raise StudyFileError(str(error)) from error
    return loaded.model_copy(update={"options": options, "name": f"{loaded.name}-{input_name(input_file)}"})


def find_stored(url: str, name: str) -> "ReadableStudy | None":
    """Return the stored study that a name means; None if it means a study that ships or a file, or nothing."""
    from autotune import studyfile
    from autotune.storage.stored_study import find_stored_studies

    if name in studyfile.catalogue() or Path(name).is_file():
        return None
    return next((one for one in find_stored_studies(url) if one.name == name and one.definition.study), None)


def _refuse_stored_name(name: str, url: str) -> None:
    """Refuse the name of a stored study, which `autotune study` cannot take, with the command that continues it.

    Raises:
        StudyFileError: The storage has a study of this name.
    """
    from autotune.storage.address import hide_password

    if (stored := find_stored(url, name)) is None:
        return
    files = (run.session.get("study_file", "") for run in reversed(stored.runs()))
    file = next(filter(None, files), f"{stored.definition.study.get('name', name)}.toml")
    path = file if "/" in file else f"./{file}"
    own = "" if stored.definition.study.get("name") == name else f" --name {name}"
    where = "" if Path(file).is_file() else ", which is not there now"
    msg = f"study {name!r} is stored in {hide_password(url)}; its file continues it: autotune study {path}{own}{where}"
    raise StudyFileError(msg)


def input_name(path: str) -> str:
    """Return the part of a study's name that stands for its input file: `my` for my.in and for in.my."""
    name = Path(path).name
    called = name.removeprefix("in.") if name.startswith("in.") and name != "in." else Path(name).stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", called)


def _check_ray(options: StudyOptions) -> None:
    address, nodes = options.ray_address, options.ray_nodes
    if address is None:
        if nodes is not None:
            msg = (
                f"--ray-nodes {nodes} counts the nodes of a Ray cluster: name the cluster with --ray-address HOST:PORT"
            )
            raise StudyFileError(msg)
        return
    if options.cores is not None:
        raise StudyFileError(ON_RAY)
    if address != "auto":
        from autotune.execution.ray_node import host_and_port

        try:
            host_and_port(address)
        except ValueError as error:
            msg = f"{error}, or auto for the Ray cluster on this host"
            raise typer.BadParameter(msg, param_hint="--ray-address") from None
    require_modules("ray")


def _until(text: str) -> float:
    from autotune.coordination.deadline import parse_end

    try:
        return parse_end(text, datetime.now().astimezone()).timestamp()
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--until") from None


def _trials(text: str) -> str:
    """Return a number of trials, or `auto`, in the spelling of a study file.

    Raises:
        typer.BadParameter: The text is neither.
    """
    from autotune.studyfile import AUTO

    if text != AUTO and not re.fullmatch(r"0*[1-9]\d*", text):
        msg = f"{text!r} is neither a number of trials, from 1 up, nor {AUTO}"
        raise typer.BadParameter(msg, param_hint="--trials")
    return text if text == AUTO else str(int(text))
