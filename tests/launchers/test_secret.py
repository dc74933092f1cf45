"""Secrets of a job: only the program gets them."""

import json

import pytest

from autotune.batch.job_script import JobScript, job_script
from autotune.execution.task import describe_job
from launchers import Job, Usage
from launchers.environment import inherited_variables
from launchers.local import LocalLauncher
from launchers.mpi import MpiFlavour
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.secret import (
    MASK,
    fill_masked,
    find_masked_variables,
    find_masked_words,
    is_secret,
    mask_secrets,
    mask_tables,
    mask_urls,
    mask_words,
    placeholder_variables,
)
from objectives.base import Context
from objectives.command import CommandObjective
from objectives.command_options import CommandOptions
from objectives.mentions.words import as_text, environment_text
from tests.launchers.jobs import run_all

SECRET = "open-sesame-1"


@pytest.fixture
def job(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "login").write_text(f"key {SECRET}\n")
    parts = tuple(Job(("./a", name), tmp_path / name, {"API_KEY": SECRET, "MODE": name}, name=name) for name in "ab")
    return Job(("./a", f"--key={SECRET}"), tmp_path, {"API_KEY": SECRET, "URL": f"u:{SECRET}@h", "N": "1"}, parts=parts)


SECRET_NAMES = [
    "WANDB_API_KEY HF_TOKEN HUGGING_FACE_HUB_TOKEN DB_PASSWORD apikey AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN GITHUB_TOKEN GH_TOKEN GITHUB_PAT AZURE_DEVOPS_EXT_PAT",
    "CI_JOB_TOKEN KAGGLE_KEY COMET_API_KEY NGC_API_KEY MLFLOW_TRACKING_PASSWORD MYSQL_PWD LDAP_PWD",
    "PGPASSWORD SSHPASS DB_PASS DBPASS RESTIC_PASSPHRASE APPTAINER_ENCRYPTION_PASSPHRASE REDISCLI_AUTH",
    "AUTH SINGULARITY_DOCKER_PASSWORD GOOGLE_APPLICATION_CREDENTIALS NETLIFY_CREDS SENTRY_DSN DSN",
    "AZURE_STORAGE_CONNECTION_STRING SLACK_WEBHOOK_URL SLURM_JWT SSH_PRIVATE_KEY privateKey accessKey",
    "db.password api-key auth-token HTTP_AUTHORIZATION X_COOKIE OPENAI_API_KEY2_TOKEN TOKEN PASSWORD",
    "client_secret SORT_API_KEY MASTERKEY PASSCODE BINDPW ROOTPASS",
]

OTHER_NAMES = [
    "OMP_NUM_THREADS OMP_PROC_BIND KMP_AFFINITY I_MPI_PIN I_MPI_PIN_DOMAIN OMPI_MCA_btl",
    "OMPI_MCA_plm_slurm_args PMIX_SECURITY_MODE UCX_TLS UCX_IB_PKEY UCX_NET_DEVICES FI_PROVIDER PSM2_PKEY",
    "PBS_JOBCOOKIE SLURM_JOB_ID SLURM_CPUS_PER_TASK LSB_HOSTS MPI_ANY_KEYVAL PATH PWD OLDPWD OLD_PWD",
    "INIT_PWD APPTAINER_PWD PASSES NUM_PASSES FIRST_PASS N_PASS BYPASS COMPASS SSH_ASKPASS AUTHOR",
    "AUTHORITY XAUTHORITY SSH_AUTH_SOCK RAY_AUTH_MODE TOKENIZERS_PARALLELISM MAX_TOKENS EOS_TOKEN",
    "PAD_TOKEN MAX_TOKEN MOE_TOKEN_DISPATCHER_TYPE KEYS MONKEY KEY HOTKEY KEY_SIZE SORT_KEY GROUP_KEY",
    "PRIMARY_KEY SSH_PUBLIC_KEY CACHE_KEY POSTGRES_PASSWORD_FILE HF_TOKEN_PATH PATTERN PAT SPATIAL",
    "--hash-key --rng-key --random_key vocabKey --warmup-pass --image-token --draft-token DB_HASH_KEY",
    "XDG_SESSION_ID KRB5CCNAME CUDA_VISIBLE_DEVICES LD_LIBRARY_PATH",
]


@pytest.mark.parametrize("names", SECRET_NAMES)
def test_secret_names_are_secret(names):
    assert [name for name in names.split() if not is_secret(name)] == []


@pytest.mark.parametrize("names", OTHER_NAMES)
def test_other_names_are_not_secret(names):
    assert [name for name in names.split() if is_secret(name)] == []


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgresql://ada:open@sesame@db:5432/runs", "postgresql://ada:***@db:5432/runs"),
        ("https://:sesame@host/x", "https://:***@host/x"),
        ("a https://h/x?size=3&api_key=sesame&n=1 b", "a https://h/x?size=3&api_key=***&n=1 b"),
        ("ssh://git@host:22/x?size=3", "ssh://git@host:22/x?size=3"),
        ("a https://sesame@host/x https://{user}@host b", "a https://***@host/x https://{user}@host b"),
        ("http://host:8080/a@b:c", "http://host:8080/a@b:c"),
        ("ada:x@host", "ada:x@host"),
        ("redis://u:{pw}@h:1/{n} redis://u:{pw}@sesame@{h}", "redis://u:{pw}@h:1/{n} redis://u:***@{h}"),
        ("http://h?token={t}&auth=sesame{t}", "http://h?token={t}&auth=***"),
    ],
)
def test_passwords_in_urls_are_masked(text, masked):
    assert mask_urls(text) == mask_urls(masked) == masked
    assert is_secret("SERVER", text) is (text != masked)


@pytest.mark.parametrize(
    ("words", "masked"),
    [
        (["./a", "--password=x", "-n", "3"], ["./a", "--password=***", "-n", "3"]),
        (["./a", "++logger.api_key=x", "+size=3"], ["./a", "++logger.api_key=***", "+size=3"]),
        (["./a", "--auth-token", SECRET, "in"], ["./a", "--auth-token", "***", "in"]),
        (["env", f"API_KEY={SECRET}", "./a"], ["env", "API_KEY=***", "./a"]),
        (["curl", "-H", f"Authorization: Bearer {SECRET}"], ["curl", "-H", "Authorization: ***"]),
        (["./a", "--db", "mysql://u:pw@h"], ["./a", "--db", "mysql://u:***@h"]),
        (
            ["./a", "--token", "--verbose", "--eos-token", "</s>"],
            ["./a", "--token", "--verbose", "--eos-token", "</s>"],
        ),
        (["./a", "--pass", "2", "--use-auth", "off", "--max-tokens=100000"], None),
        (["./a", "--author=ada", "--keyval", "abcdef", "--password-file=/run/x"], None),
    ],
)
def test_secrets_of_a_command_line_are_masked(words, masked):
    assert mask_words(words) == (masked or words)


def test_a_job_inherits_no_secret():
    caller = {
        "APPTAINER_ENCRYPTION_PASSPHRASE": SECRET,
        "CONDA_CHANNEL": f"https://ada:{SECRET}@host/c",
        "SLURM_JWT": SECRET,
        "SSHPASS": SECRET,
        "PBS_JOBCOOKIE": "needed by tm",
        "UCX_TLS": "sm",
    }
    assert inherited_variables(caller) == {"PBS_JOBCOOKIE": "needed by tm", "UCX_TLS": "sm"}


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


def test_secrets_in_commands_and_urls_of_a_study_file_are_not_stored():
    options = {
        "argv": ["./a", "--password", SECRET, ["--api-key={x}", "--mode", "fast"]],
        "prepare": [["get", f"https://ada:{SECRET}@host/data"]],
        "environment": {"SERVER": f"redis://:{SECRET}@host/0", "MYSQL_PWD": SECRET},
    }
    study = {"options": options, "space": {"x": {"choices": ["token=abcdefg", "b"]}}}
    stored = mask_tables(study)
    assert SECRET not in json.dumps(stored)
    assert stored["options"]["argv"] == ["./a", "--password", MASK, ["--api-key={x}", "--mode", "fast"]]
    assert stored["space"] == study["space"]
    assert find_masked_variables(stored) == {"SERVER", "MYSQL_PWD"}
    assert find_masked_words(stored) == [MASK, "https://ada:***@host/data"]
    assert find_masked_words(study) == []
    filled = fill_masked(stored["options"]["environment"], options["environment"])
    assert filled == options["environment"]
    assert SECRET not in as_text(options["argv"])


def test_secrets_in_commands_of_a_job_are_not_stored(tmp_path):
    (tmp_path / "login").write_text(f"postgresql://ada:{SECRET}@host\n")
    argv = ("./a", "--password", "short", f"--url=redis://:{SECRET}@host/0", "--auth", "krb-5")
    job = Job(argv, tmp_path, {"MODE": "x"}, prepare=(("env", "SSHPASS=short", "get"),), tuned=frozenset({"auth"}))
    described = describe_job(job)
    assert described["argv"] == ["./a", "--password", MASK, "--url=redis://:***@host/0", "--auth", "krb-5"]
    assert described["prepare"] == [["env", "SSHPASS=***", "get"]]
    assert SECRET not in json.dumps(described)
    assert SECRET not in LocalLauncher().preview(job)
    text = job_script("sh", JobScript("mine", {}, described, Usage(1.0), MpiFlavour(OPEN_MPI)))
    assert '--password "${SECRET:?' in text
    assert SECRET not in text


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


def test_a_password_in_a_url_is_a_secret_although_a_parameter_fills_in_the_host(tmp_path):
    given = {"DATABASE_URL": f"postgres://u:{SECRET}@{{host}}:5432/x", "N": 1, "CACHE_URL": "redis://u:{host}@h"}
    masked = given | {"DATABASE_URL": "postgres://u:***@{host}:5432/x"}
    stored = mask_tables({"environment": given})
    assert stored["environment"] == masked
    # The caller's variable would lack the parameter.
    assert find_masked_variables(stored) == set()
    assert find_masked_words(stored) == [masked["DATABASE_URL"]]
    variables = {"DATABASE_URL": given["DATABASE_URL"]}
    assert environment_text(variables) == f"DATABASE_URL={masked['DATABASE_URL']}"
    objective = CommandObjective(CommandOptions.model_validate({"argv": ["./a"], "environment": variables}))
    (tmp_path / "login").write_text(SECRET)
    described = describe_job(objective.job({"host": "db7"}, Context(tmp_path)))
    assert described["environment"]["DATABASE_URL"] == "postgres://u:***@db7:5432/x"
    assert SECRET not in json.dumps(described)


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
