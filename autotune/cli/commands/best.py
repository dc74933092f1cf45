"""The command that prints the winner of a study, or a job script of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.batch.script_forms import SHELL
from autotune.cli.choices import SCRIPT_FORM
from autotune.cli.common import output, print_json, write_script
from autotune.cli.options import DEFAULT_STORAGE, AsJson, Storage, StudyName
from autotune.cli.where import SiteOption
from autotune.errors import NothingWorkedError
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.results.summary import Summary
    from launchers.site import Site


def best(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    script: Annotated[
        str | None, typer.Option("--script", help="Print a job script of this kind.", **SCRIPT_FORM)
    ] = None,
    site: SiteOption = None,
    target: Annotated[Path | None, typer.Option("--output", "-o", help="Write the script to a file instead.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the winner, its speed-up and its uncertainty.

    The speed-up is that over the default configuration. --script makes a job script of the winner.
    """
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import stored_study

    store = stored_study(storage_url(storage), name)
    summary = summarise(store)
    if summary.best is None:
        msg = f"study {name!r} has no valid measurement yet"
        raise NothingWorkedError(msg)
    if script is not None:
        from autotune.batch.winner_script import script_of

        write_script(script_of(store, summary, script, _site(site, summary, script)), target)
    elif as_json:
        found = summary.to_dict()
        print_json(
            found["best"] | {key: found[key] for key in ("replay", "speed_up", "verdict", "simplified", "outlook")}
        )
    else:
        output().print(summary.best_text(), markup=False)


def _site(name: str | None, summary: "Summary", form: str) -> "Site | None":
    """Return the site of a job script: the one that is asked for, or the one that the study was made for."""
    from autotune.batch.site_file import find_cluster

    launcher = summary.definition.study.get("launcher", {})
    if name is None and launcher.get("kind") != form:
        return None
    return find_cluster(name or launcher.get("site"), None if form == SHELL else form).site
