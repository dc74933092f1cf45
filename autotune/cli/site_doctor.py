"""`autotune doctor --launcher`: submit tiny jobs to learn how a site's batch system works."""

import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer

from autotune.cli.common import errors, output, print_json
from autotune.cli.placement import check_site
from autotune.errors import CannotRunHereError, ExitCode
from autotune.files import write_output
from autotune.formatting import plain_line
from launchers.batch_systems.registry import find_batch_system
from launchers.site import Site

_POLL_S = 1.0


def probe_site(
    launcher: str | None,
    site: str | None,
    settings: Mapping[str, str | None],
    patience_s: float,
    target: Path | None,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Submit the jobs, print what they show, and write a site file.

    Args:
        launcher: The batch system.
        site: The name or the file of a known site.
        settings: The queue and the account to use, by name.
        patience_s: Jobs that have not ended after this many seconds are cancelled.
        target: The site file to write; None writes none.
        yes: Do not ask before submitting.
        as_json: Print JSON.

    Raises:
        AutotuneError: The site is unknown, or this host has no batch system.
        typer.Exit: The user does not agree, or no job has run.
    """
    from autotune.batch.probe_report import site_sentences, site_text
    from autotune.batch.site_probe import JOBS, LONGEST_S, probe
    from launchers.batch import BatchLauncher

    given = {name: value for name, value in settings.items() if value is not None}
    chosen, keys = _find_site(launcher, site, given)
    if target is not None:
        _check_target(target)
    _confirm(
        f"this submits {JOBS} jobs of at most {LONGEST_S:g} s to {chosen.scheduler}: two on one core, one on two "
        f"nodes; it cancels jobs that have not ended after {patience_s:g} s",
        yes=yes,
    )
    system = find_batch_system(chosen.scheduler)
    folder = _make_folder()
    queue = BatchLauncher(system.scheduler, chosen, prefix="autotune")
    try:
        found = probe(queue, system, folder, patience_s, lambda text: errors().print(text))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        jobs = [{**asdict(job), "sight": job.sight and job.sight.model_dump()} for job in found.jobs]
        findings = {"jobs": jobs, "history": found.remembers, "limits": found.limits}
        print_json({"system": chosen.scheduler, **findings, "sentences": site_sentences(found)})
    else:
        for sentence in site_sentences(found):
            output().print(sentence)
    if not found.sights:
        raise typer.Exit(ExitCode.CANNOT_RUN_HERE)
    if target is not None:
        _write(target, site_text(found, keys))


def _find_site(launcher: str | None, name: str | None, given: Mapping[str, str]) -> tuple[Site, dict[str, Any]]:
    """Return the site to submit jobs to, and the keys of a site file that describe it.

    Raises:
        AutotuneError: The site is unknown, or this host cannot submit jobs to it.
    """
    from autotune.batch.site_file import absolute_site, find_cluster, own_cluster

    cluster = find_cluster(name, launcher) if name is not None else own_cluster(launcher or "")
    if cluster is not None:
        known, keys = cluster.site, {"base": absolute_site(name)} if name is not None else {}
    else:
        known, keys = Site(str(launcher), str(launcher), nodes=2), {}
    site = replace(
        known,
        queue=given.get("queue", known.queue),
        account=given.get("account", known.account),
        poll_s=min(known.poll_s, _POLL_S),
    )
    check_site(site)
    return site, {**(keys or {"name": site.name, "scheduler": site.scheduler, "machine": "this"}), **given}


def _check_target(target: Path) -> None:
    """Check, before any job is submitted, that the file can be written; ask before replacing a file.

    Raises:
        typer.BadParameter: The file cannot be written, or it exists and there is no terminal to ask at.
        typer.Exit: The user does not agree.
    """
    if not target.absolute().parent.is_dir():
        msg = f"cannot write {target}: no folder {target.absolute().parent}"
        raise typer.BadParameter(msg, param_hint="--write")
    if target.exists():
        _ask(f"{target} exists and would be replaced", "give another name", "--write")


def _confirm(what: str, *, yes: bool) -> None:
    """Print what is about to happen, and ask the user to confirm unless `yes`."""
    if yes:
        errors().print(what)
    else:
        _ask(what, "add --yes to do it without asking", "--yes")


def _ask(what: str, otherwise: str, option: str) -> None:
    """Ask the user to confirm.

    Raises:
        typer.BadParameter: There is no terminal to ask at.
        typer.Exit: The user does not agree.
    """
    if not sys.stdin.isatty():
        msg = f"{what}; there is no terminal to ask at: {otherwise}"
        raise typer.BadParameter(msg, param_hint=option)
    if not typer.confirm(plain_line(f"{what}. Continue?"), err=True):
        errors().print("nothing was done")
        raise typer.Exit(1)


def _make_folder() -> Path:
    """Make a folder for the jobs in the current folder, where studies would put theirs.

    Raises:
        CannotRunHereError: The current folder is not writable.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=".autotune-doctor-", dir=Path.cwd()))
    except OSError as error:
        msg = f"cannot make a folder for the jobs in {Path.cwd()}: {error.strerror}; start in a writable folder"
        raise CannotRunHereError(msg) from None


def _write(target: Path, text: str) -> None:
    try:
        write_output(target, text)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror}"
        raise typer.BadParameter(msg, param_hint="--write") from None
    errors().print(f"wrote {target}: check it, then use it with --site {target}")
