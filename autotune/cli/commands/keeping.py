"""`autotune reread`: read the kept outputs of a study's runs once more."""

from dataclasses import asdict
from typing import Annotated

import typer

from autotune.cli.common import displayed, output, print_json
from autotune.cli.completion import study_names
from autotune.cli.options import DEFAULT_STORAGE, AsJson, SetOption, Storage
from autotune.cli.where import cluster_of, machine_and_launcher
from autotune.storage.address import storage_url


def reread(
    name: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="The study's name, or its study file (./mine.toml) as it is now.",
            autocompletion=study_names,
        ),
    ],
    changes: SetOption = None,
    storage: Storage = DEFAULT_STORAGE,
    stored_name: Annotated[
        str | None, typer.Option("--name", help="Name of the study in the storage; by default that of the study file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read the kept outputs of a study's runs again.

    Nothing runs. `autotune study` does so by itself when only the way of reading has changed.
    """
    from autotune import studyfile
    from autotune.coordination.session_settings import SessionSettings, default_runs
    from autotune.tuning.rereading import reread_study
    from autotune.tuning.session import stored_study

    url = storage_url(storage)
    if name.endswith(".toml"):
        study = studyfile.load(studyfile.find(name), changes or [])
        stored_name = stored_name or study.name
    else:
        stored_name = stored_name or name
        study = stored_study(url, stored_name)
        if changes:
            msg = f"changes a study file: give that, `autotune reread ./{name}.toml --set {changes[0]}`"
            raise typer.BadParameter(msg, param_hint="--set")
    machine, launcher, facts = machine_and_launcher(cluster_of(study), None, stored_name)
    settings = SessionSettings(url, stored_name, default_runs(url, stored_name), machine, launcher, facts=facts)
    with displayed() as display:
        found = reread_study(study, settings, display)
    if as_json:
        print_json(asdict(found))
    else:
        output().print(found.sentence(), markup=False)
