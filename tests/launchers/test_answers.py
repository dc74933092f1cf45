"""The stand-ins may print only texts with a source: the batch system's source code or a real installation."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from launchers import JobState
from launchers.batch_systems.flux import FLUX
from launchers.batch_systems.pbs import PBS
from launchers.batch_systems.slurm import SLURM
from tests.launchers.fakes import flux, flux_answers, grid_engine, grid_engine_answers, lsf, lsf_answers, pbs, slurm
from tests.launchers.fakes.answers import Answers
from tests.launchers.fakes.pbs_answers import ANSWERS, COMMENTS, ENDS, HELD, REFUSALS, VERSIONS
from tests.launchers.fakes.slurm_answers import ANSWERS as SLURMS
from tests.launchers.fakes.slurm_answers import FINAL, PASSING, SHOWN, WAITING
from tests.launchers.fakes.slurm_answers import VERSIONS as SLURM_VERSIONS

# A source is a file of the batch system's own repository or another one, a manual page, or a witness.
SOURCE = re.compile(
    r"(src|doc|source)/[\w./-]+\.\w+( of [\w/-]+)?|getopt\(3\)|argparse|issue \d+ of [\w./-]+"
    r"|seen (on|by users of) [\w ]+ \d\S+|manual of [\w .-]+"
)
STAND_INS = {
    slurm: (SLURMS, SHOWN),
    pbs: (ANSWERS, COMMENTS),
    grid_engine: (grid_engine_answers.ANSWERS,),
    lsf: (lsf_answers.ANSWERS, lsf_answers.SHOWN),
    flux: (flux_answers.ANSWERS, flux_answers.SHOWN),
}
# About what the stand-in itself cannot do.
OWN = ("this stand-in",)


@pytest.fixture(params=STAND_INS, ids=lambda module: module.__name__.rpartition(".")[2])
def stand_in(request) -> ModuleType:
    return request.param


def test_every_answer_has_its_source(stand_in):
    for answers in STAND_INS[stand_in]:
        for answer in answers.every():
            assert SOURCE.fullmatch(answer.source), answer
            assert {answer.since, answer.until} <= {"", *answers.versions}, answer


def test_every_version_has_one_answer_to_a_name(stand_in):
    for answers in STAND_INS[stand_in]:
        for name, said in answers.by_name.items():
            alone = [Answers(answers.versions, {name: one}) for one in (said if isinstance(said, tuple) else (said,))]
            for version in answers.versions:
                assert sum(name in one.of(version) for one in alone) <= 1, (name, version)


def test_stand_in_prints_only_answers_with_a_source(stand_in):
    tree = ast.parse(Path(stand_in.__file__).read_text())
    said = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"RefusedError", "print"}:
            said += list(_texts(node))
    assert [text for text in said if " " in text and not any(own in text for own in OWN)] == []


def _texts(node: ast.AST) -> Iterator[str]:
    """Return the texts in a call, without names of answers."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif not (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "text"):
            yield from _texts(part)


def test_ends_and_comments_are_of_the_same_jobs():
    others = {"queued", "queue stopped", "never", "deleted before", "running", "finished", "failed", *HELD}
    assert set(COMMENTS.by_name) - others <= set(ENDS)
    assert set(ANSWERS.by_name) >= REFUSALS
    assert set(SLURMS.by_name) >= PASSING | FINAL


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["away", "silent", "no such host", "system"])
def test_pbs_that_cannot_be_reached_is_waited_for(version, name):
    if name in ANSWERS.of(version):
        assert PBS.scheduler.can_wait(ANSWERS.text(name, version, command="qsub", server="pbshost"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["qstat away", "qstat unproved"])
def test_failed_qstat_is_no_answer(version, name):
    answer = ANSWERS.of(version)[name]
    assert PBS.scheduler.states("", answer.text.format(server="pbshost", job="7.pbshost"), answer.number % 256) is None


@pytest.mark.parametrize("version", SLURM_VERSIONS)
def test_every_slurm_reason_has_words(version):
    shown = SHOWN.of(version)
    for name in WAITING & set(shown):
        seen = (SLURM.scheduler.states(f"7|{shown[name].text}\n", "", 0) or {})["7"]
        assert seen.state is JobState.QUEUED, name
        assert seen.message, name
    for name in set(shown) - WAITING:
        seen = (SLURM.scheduler.states(f"7|{shown[name].text}\n", "", 0) or {})["7"]
        assert seen.state is not JobState.QUEUED, name


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("launch failed requeued held", "its node could not start it"),
        ("launch_failed_requeued_held", "its node could not start it"),
        ("user_env_retrieval_failed_requeued_held", "its login shell"),
        ("job requeued in held state", "put back into the queue"),
    ],
)
def test_requeued_and_held_job_reports_the_command_that_releases_it(reason, words):
    (seen,) = (SLURM.scheduler.states(f"7|PENDING|{reason}\n", "", 0) or {}).values()
    assert words in seen.message
    assert "scontrol release" in seen.message
    assert reason in seen.message


def test_failed_flux_query_does_not_mean_that_jobs_are_unknown():
    answers = flux_answers.ANSWERS.of(None)
    assert FLUX.scheduler.states("", answers["no answer"].text, answers["no answer"].number) is None
    assert FLUX.scheduler.states("", answers["unknown job"].text.format(job="fA1"), answers["unknown job"].number) == {}
