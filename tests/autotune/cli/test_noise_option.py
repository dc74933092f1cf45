"""Every command that makes runs can be told what to do about noise; a change is accepted while nobody checks."""

from dataclasses import replace

import pytest
import typer

from autotune.cli.app import app
from autotune.cli.commands.watch import _accept
from autotune.cli.options import Noise
from autotune.cli.session_options import SessionOptions
from autotune.errors import BusyError
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space, study_file


@pytest.fixture
def store(tmp_path):
    study = study_file().model_dump(mode="json")
    return StudyStore.create(
        f"sqlite:///{tmp_path / 'autotune.db'}", "paper", replace(definition(small_space()), study=study)
    )


def test_every_command_that_may_take_a_study_over_has_the_option():
    commands = typer.main.get_command(app).commands
    options = {name: {flag for one in command.params for flag in one.opts} for name, command in commands.items()}
    running = {name for name, its in options.items() if {"--take-over", "--cores"} <= its}
    assert {"study", "confirm", "ablate", "sweep", "rightsize", "watch"} <= running
    assert [name for name in sorted(running) if not {"--noise", "--notify", "--quiet"} <= options[name]] == []
    assert [name for name in sorted(running) if "--status" not in options[name]] == []


@pytest.mark.parametrize(("given", "mode"), [(Noise.REFUSE, "refuse"), (None, None)])
def test_a_comparison_runs_in_the_mode_that_was_given(store, given, mode):
    study, _ = SessionOptions(storage=store.url, noise=given).load_stored(store.name)
    assert study.noise.mode == mode


@pytest.mark.slow
def test_nothing_is_accepted_while_somebody_works_on_the_study(store):
    lock = StudyLock.acquire(store.url, store.name)
    try:
        with pytest.raises(BusyError, match="is being worked on"):
            _accept(store.url, store.name)
    finally:
        lock.release()
