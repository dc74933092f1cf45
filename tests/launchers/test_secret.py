"""Secrets of a job: only the program gets them."""

import json

import pytest

from autotune.batch.job_script import JobScript, job_script
from autotune.execution.task import describe_job
from launchers import Job, Usage
from launchers.local import LocalLauncher
from launchers.mpi import MpiFlavour
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.secret import (
    MASK,
    fill_masked,
    find_masked_variables,
    is_secret,
    mask_secrets,
    mask_tables,
    placeholder_variables,
)
from objectives.base import Context
from objectives.command import CommandObjective
from objectives.command_options import CommandOptions
from objectives.mentions.words import environment_text
from tests.launchers.jobs import run_all

SECRET = "open-sesame-1"


@pytest.fixture
def job(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "login").write_text(f"key {SECRET}\n")
    parts = tuple(Job(("./a", name), tmp_path / name, {"API_KEY": SECRET, "MODE": name}, name=name) for name in "ab")
    return Job(("./a", f"--key={SECRET}"), tmp_path, {"API_KEY": SECRET, "URL": f"u:{SECRET}@h", "N": "1"}, parts=parts)


@pytest.mark.parametrize("name", ["WANDB_API_KEY", "HF_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "apikey"])
def test_secret_names_are_secret(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "OMP_NUM_THREADS", "KEYS", "MONKEY"])
def test_other_names_are_not_secret(name):
    assert not is_secret(name)


def test_stored_job_has_no_secret_in_variables_command_or_files(job):
    stored = json.dumps(describe_job(job))
    assert SECRET not in stored
    described = json.loads(stored)
    assert described["environment"] == {"API_KEY": MASK, "URL": "u:***@h", "N": "1"}
    assert described["argv"] == ["./a", "--key=***"]
    assert described["files"]["login"] == "key ***\n"
    assert [part["environment"]["API_KEY"] for part in described["parts"]] == [MASK, MASK]


def test_preview_masks_secrets(tmp_path):
    assert SECRET not in LocalLauncher().preview(Job(("true",), tmp_path, {"API_KEY": SECRET}))


def test_winner_script_requires_the_secret_variable(tmp_path):
    described = describe_job(Job(("./a",), tmp_path, {"API_KEY": SECRET, "MODE": "fast"}))
    text = job_script("sh", JobScript("mine", {}, described, Usage(1.0), MpiFlavour(OPEN_MPI)))
    assert ': "${API_KEY:?' in text
    assert "export API_KEY\n" in text
    assert MASK not in text


def test_program_gets_a_secret_of_the_callers_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("API_KEY", SECRET)
    argv = ("sh", "-c", 'echo "$API_KEY $MODE"')
    given, stored = tmp_path / "given", tmp_path / "stored"
    jobs = [Job(argv, given, {"API_KEY": "other", "MODE": "x"}), Job(argv, stored, {"API_KEY": MASK, "MODE": "***"})]
    for one in jobs:
        one.folder.mkdir()
    run_all(LocalLauncher(), jobs)
    assert (given / "stdout").read_text() == "other x\n"
    assert (stored / "stdout").read_text() == f"{SECRET} ***\n"
    assert fill_masked({"API_KEY": MASK, "N": "1"}, {}) == {"N": "1"}


def test_stored_study_file_has_names_only():
    told = {"environment": {"API_KEY": SECRET, "SORT_KEY": "{x}", "N": "1"}, "argv": ["a", "{x}"]}
    study = {"options": told, "software": {"new": {"environment": {"TOKEN": SECRET}}}, "inputs": [{"options": told}]}
    stored = mask_tables(study)
    assert SECRET not in json.dumps(stored)
    assert stored["options"] == told | {"environment": {"API_KEY": MASK, "SORT_KEY": "{x}", "N": "1"}}
    assert find_masked_variables(stored) == {"API_KEY", "TOKEN"}
    assert find_masked_variables(study) == set()


def test_sort_and_group_keys_are_not_secret():
    variables = {"SORT_KEY": "postcode", "DB_PARTITION_KEY": "day", "ACCESS_KEY": SECRET, "SORT_API_KEY": SECRET}
    hidden = {"ACCESS_KEY": MASK, "SORT_API_KEY": MASK}
    assert mask_secrets(variables) == variables | hidden


def test_variable_filled_by_a_parameter_is_not_secret(tmp_path):
    variables = {"SORT_KEY": "{by}", "API_KEY": "{{open}}-sesame"}
    objective = CommandObjective(CommandOptions.model_validate({"argv": ["./a", "{by}"], "environment": variables}))
    job = objective.job({"by": "postcode"}, Context(tmp_path))
    described = json.loads(json.dumps(describe_job(job)))
    assert described["argv"] == ["./a", "postcode"]
    own = {"OMP_NUM_THREADS": "1", "AUTOTUNE_SEED": "0"}
    assert described["environment"] == {"SORT_KEY": "postcode", "API_KEY": MASK} | own
    assert "SORT_KEY=postcode" in LocalLauncher().preview(job)
    text = job_script("sh", JobScript("mine", {}, described, Usage(1.0), MpiFlavour(OPEN_MPI)))
    assert "export SORT_KEY=postcode\n" in text
    # Apart from secrets, the values that make measurements comparable are unchanged.
    assert environment_text(variables) == "API_KEY=***, SORT_KEY={by}"
    assert mask_tables({"environment": variables})["environment"] == {"SORT_KEY": "{by}", "API_KEY": MASK}


@pytest.mark.parametrize(
    ("template", "is_tuned"), [("{x}", True), ("a{= x + 1}", True), ("{{x}}", False), ("x", False)]
)
def test_doubled_brace_is_not_a_placeholder(template, is_tuned):
    assert (placeholder_variables({"KEY": template}) == {"KEY"}) is is_tuned


def test_secret_that_is_a_part_of_the_folders_name_leaves_the_folder_as_it_is(tmp_path):
    (tmp_path / "folder").write_text(f"{tmp_path.name}\n")
    described = describe_job(Job(("./a", tmp_path.name), tmp_path, {"DB_PASSWORD": tmp_path.name}))
    assert described["folder"] == str(tmp_path)
    assert described["argv"] == ["./a", MASK]
    assert described["files"] == {"folder": f"{MASK}\n"}
