"""The winner's job script and the report, as the service gives them out: to its own user, and to others."""

import pytest

from autotune.batch.winner_script import script_of
from autotune.records.study import Run
from autotune.report import report_of
from autotune.report.page import to_html
from autotune.results.summary import summarise
from autotune.service.routes import trials
from autotune.service.routes.app import create_app
from autotune.service.settings import Settings
from autotune.service.tokens import TokenBook
from autotune.service.workers import KeptAnswers
from autotune.storage.study_store import StudyStore
from launchers import STDERR, STDOUT
from tests.autotune.results.test_summary import JOB
from tests.autotune.service.test_access import START, ask
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()
BLAS = "/home/jo/blas/openblas-pthread"
MEASURED = JOB | {
    "argv": ["/opt/qe/bin/pw.x", "-inp", "pw.in"],
    "environment": {"LD_LIBRARY_PATH": BLAS},
    "files": {"pw.in": "pseudo_dir = '/home/jo/espresso/pseudo/'\n"},
}


@pytest.fixture
def settings(tmp_path):
    url = f"sqlite:///{tmp_path / 'autotune.db'}"
    store = StudyStore.create(url, "qe", definition(SPACE))
    default, other = SPACE.default(), next(one for one in SPACE.configurations() if one != SPACE.default())
    add_trial(store, SPACE, default, took(2.0))
    number = add_trial(store, SPACE, other, took(1.0)).number
    store.add_runs([Run(other, number, outcome=took(1.0), job=MEASURED)])
    return Settings(url, tmp_path / "service", read_only=True, start_token=START)


def test_a_trial_is_shown_with_its_runs_and_their_commands(settings):
    app = create_app(settings)
    found = ask(app, path="/studies/qe/trials/1").json()
    assert found["trial"]["trial"] == 1
    assert [run["value"] for run in found["made"]] == [1.0, 1.0]
    assert [run["purpose"] for run in found["made"]] == ["tuning", "tuning"]
    without, command = (run["commands"] for run in found["made"])
    assert without == []
    assert command[0].endswith(" /opt/qe/bin/pw.x -inp pw.in")
    assert f"LD_LIBRARY_PATH={BLAS}" in command[0]
    assert ask(app, path="/studies/qe/trials/7").status_code == 404


def test_what_a_run_printed_is_shown_from_its_own_folder_only(settings, monkeypatch, tmp_path):
    folder, secret = tmp_path / "run", tmp_path / "secret"
    folder.mkdir()
    secret.write_text("nobody's business")
    (folder / STDOUT).write_text("line\n" * 10_000 + "the end\n")
    (folder / STDERR).symlink_to(secret)
    run = Run({}, 0, outcome=took(1.0), job={"folder": str(folder)})
    monkeypatch.setattr(trials, "is_folder_of", lambda path, usage: usage == run.outcome.usage)
    printed = trials.read_run_output(run)
    assert printed["stdout"].startswith("[...]\nline\n")
    assert printed["stdout"].endswith("the end\n")
    assert len(printed["stdout"]) < 20_000
    assert printed["stderr"] == ""
    monkeypatch.setattr(trials, "is_folder_of", lambda path, usage: False)
    assert trials.read_run_output(run) == {"stdout": "", "stderr": ""}


@pytest.mark.slow
def test_the_own_user_gets_what_the_command_prints(settings):
    app, store = create_app(settings), StudyStore.read(settings.url, "qe")
    for form in ("slurm", "sh"):
        text = ask(app, path=f"/studies/qe/script?form={form}").text
        assert text == script_of(store, summarise(store), form)
        assert f"LD_LIBRARY_PATH={BLAS}\n" in text
    assert "pseudo_dir = '/home/jo/espresso/pseudo/'" in text
    assert ask(app, path="/studies/qe/report").text == to_html(report_of(store))


def test_only_the_script_for_others_takes_room_among_the_kept_answers(settings, monkeypatch):
    settings.folder.mkdir()
    token, app, kept = TokenBook(settings.tokens).add("ada"), create_app(settings), []
    monkeypatch.setattr(KeptAnswers, "keep", lambda self, key, answer: kept.append(answer.content))
    assert ask(app, path="/studies/qe/script?form=sh").status_code == 200
    assert kept == [], "the site file of the owner may change at any time, so it is made again"
    assert [ask(app, path="/studies/qe/script?form=sh", token=token).content] == kept
    assert ask(app, path="/studies/none/script").status_code == 404


@pytest.mark.slow
def test_who_shows_a_token_gets_the_same_script_and_report(settings):
    settings.folder.mkdir()
    token = TokenBook(settings.tokens).add("ada")
    app, store = create_app(settings), StudyStore.read(settings.url, "qe")
    text = ask(app, path="/studies/qe/script?form=sh", token=token).text
    assert text == script_of(store, summarise(store), "sh")
    assert ask(app, path="/studies/qe/report", token=token).text == to_html(report_of(store))
