"""Each sentence of SECURITY.md names the tests that show its promises, in SHOWN, or is in NO_PROMISE.

After changing a sentence of the page, change it here, too.
"""

import ast
import re
from functools import cache

import pytest

from tests.docs.page import ROOT

PAGE = ROOT / "SECURITY.md"
SOURCES = [
    path for folder in ("autotune", "objectives", "launchers", "spaces") for path in (ROOT / folder).rglob("*.py")
]

_PAIRS = """
no part needs root, and none changes users
    docs/test_security.py::test_nothing_changes_its_user
a sudo that asks for nothing, and only to install packages
    test_run_script.py::test_root_is_used_in_two_functions
`AUTOTUNE_NO_SYSTEM=1` forbids it
    test_run_script.py::test_system_packages_are_installed_unless_the_user_forbids_it
Rules and values are parsed by a grammar
    docs/test_security.py::test_no_text_is_executed_and_nothing_is_unpickled
    autotune/planning/test_check.py::test_three_mistakes_are_three_each_with_path_and_line
Nothing is unpickled
    docs/test_security.py::test_no_text_is_executed_and_nothing_is_unpickled
`autotune check --static` runs and imports nothing
    autotune/planning/test_check.py::test_a_file_of_others_is_read_without_running_or_importing_anything_of_it
    autotune/planning/test_check.py::test_what_a_file_of_others_names_neither_speaks_to_the_terminal_nor_shows_secrets
checks the hashes of what autotune itself needs
    docs/test_security.py::test_installed_packages_have_hashes
is that of one commit
    autotune/search/test_registry.py::test_a_sampler_of_optunahub_is_loaded_by_its_package
Reports and the page escape what they show of a study
    autotune/report/test_report.py::test_hostile_words_are_only_words
    autotune/service/page/test_page.py::test_hostile_text_stays_text
    docs/test_security.py::test_the_page_writes_no_markup
the secrets of the caller's environment
    launchers/test_secret.py::test_a_job_inherits_no_secret
    launchers/test_local.py::test_surroundings_of_the_caller_replace_the_folder_and_the_few_variables
Processes that it leaves running are ended
    autotune/tuning/test_faults.py::test_children_that_are_left_behind_end_with_the_run
    conformance/test_launchers.py::test_a_job_that_ends_leaves_no_process
Its output is read up to a limit
    autotune/tuning/test_faults.py::test_a_flood_of_output_is_a_measurement_in_bounded_memory
keep it locked, so that nobody writes it
    autotune/storage/test_permissions.py::test_a_user_who_can_read_a_storage_can_keep_it_locked_and_a_copy_is_free
what its [scope](docs/service.md#access) allows:
    autotune/service/test_access.py::test_a_token_may_do_what_it_was_made_for
A token allows what its scope allows
    autotune/service/test_access.py::test_a_token_may_do_what_it_was_made_for
    autotune/service/test_tokens.py::test_a_running_service_notices_new_and_removed_tokens
A token with a budget (`--studies`) only starts new studies
    autotune/service/test_access.py::test_a_token_with_a_budget_starts_studies_and_changes_no_others
    autotune/service/test_studies.py::test_requests_at_once_start_no_more_studies_than_a_budget_allows
    autotune/service/test_studies.py::test_the_budget_of_the_token_counts_and_that_of_the_request_without_one
until it expires
    autotune/service/test_tokens.py::test_a_token_expires_and_its_owner_can_have_another
event streams end with it
    autotune/service/test_hub.py::test_who_may_not_follow_any_more_gets_no_further_event
is written before an order is carried out
    autotune/service/test_audit.py::test_an_order_is_written_down_before_it_is_carried_out_and_a_refusal_after
    autotune/service/test_audit.py::test_an_order_that_a_full_disk_cuts_is_not_done_and_leaves_nothing
starts studies of the catalogue by their names
    autotune/service/test_studies.py::test_only_a_study_of_the_catalogue_is_started
Send a command, an option, a file or a path, or make tokens
    autotune/supervision/test_desired_state.py::test_no_value_of_an_order_is_taken_for_an_option_or_for_a_shell
    docs/test_security.py::test_no_request_makes_a_token
nothing: every request needs a token
    autotune/service/test_access.py::test_whoever_shows_none_gets_nothing_but_where_to_find_one
a language model that `autotune mcp` connects
    autotune/agents/test_mcp.py::test_the_command_speaks_the_protocol_and_its_token_is_no_more_than_its_scope
what its scope allows, checked by the service
    autotune/agents/test_mcp.py::test_the_tools_are_those_of_the_scope_and_the_space_is_in_the_schema
Propose an invalid configuration; run
    autotune/agents/test_mcp.py::test_an_adversary_launches_nothing_and_learns_no_secret
`operate` starts studies of the catalogue within the budget
    autotune/agents/test_mcp.py::test_no_budget_is_overrun_however_often_and_at_once_it_is_tried
    autotune/service/test_studies.py::test_requests_at_once_start_no_more_studies_than_a_budget_allows
run, import or open what a study file of its own names
    autotune/agents/test_mcp.py::test_a_study_file_of_a_model_is_only_read
exceed its budget of studies, trials or time
    autotune/agents/test_mcp.py::test_no_budget_is_overrun_however_often_and_at_once_it_is_tried
    autotune/service/test_studies.py::test_requests_at_once_start_no_more_studies_than_a_budget_allows
    autotune/service/test_budgets.py::test_an_agent_gets_what_its_owner_allows_and_no_more
What programs and other people wrote is marked as data
    autotune/agents/test_answers.py::test_what_others_wrote_is_named_once_and_what_is_empty_left_out
    autotune/agents/test_answers.py::test_answers_are_bounded
    autotune/agents/test_answers.py::test_what_cannot_be_seen_is_left_out
has no tool that pauses, stops or deletes a study
    autotune/agents/test_mcp.py::test_an_adversary_launches_nothing_and_learns_no_secret
listens on the loopback address by default
    docs/test_security.py::test_the_service_listens_on_the_loopback_address
With `--read-only` it opens the storage for reading
    autotune/service/test_read_only.py::test_everything_can_be_seen_and_nothing_changed
The service makes a token at each start
    autotune/service/test_tokens.py::test_the_token_of_a_start_is_for_this_user_only_and_ends_with_the_service
    autotune/service/test_service.py::test_a_service_that_is_terminated_removes_its_token
only if file and folder belong
    autotune/service/test_tokens.py::test_a_token_that_others_could_read_or_have_written_is_not_sent
behind the `#`
    autotune/service/test_service.py::test_the_owner_is_told_the_address_with_the_token_and_no_log_has_it
in its own storage, not in a cookie
    autotune/service/page/test_views.py::test_a_token_in_the_address_is_taken_once_and_removed
    docs/test_security.py::test_nothing_sets_a_cookie
output that is no terminal never contain it
    autotune/service/test_service.py::test_the_owner_is_told_the_address_with_the_token_and_no_log_has_it
The Unix socket of `--socket` needs no token
    autotune/service/test_unix_socket.py::test_a_unix_socket_is_this_users_and_is_removed
A request with a proxy's header
    autotune/service/test_access.py::test_the_unix_socket_needs_no_token_unless_a_proxy_sends_what_others_asked
have 256 random bits
    docs/test_security.py::test_tokens_are_long_and_compared_in_constant_time
Only the SHA-256 of these is stored
    autotune/service/test_tokens.py::test_what_is_kept_is_no_token_and_only_for_this_user
    autotune/service/test_tokens.py::test_a_file_that_others_could_have_written_lets_nobody_in
    autotune/service/test_tokens.py::test_a_folder_that_others_can_write_lets_nobody_in_and_takes_no_token
a request for another host name is refused
    autotune/service/test_access.py::test_a_name_of_another_site_that_leads_here_is_refused
A change that comes from a page of another origin
    autotune/service/test_access.py::test_a_page_of_another_site_changes_nothing
    autotune/service/test_access.py::test_a_form_of_another_site_cannot_be_a_request
The content security policy allows only
    autotune/service/test_access.py::test_every_answer_tells_browsers_what_it_is_not_for
A body has at most 64 KiB
    autotune/service/test_access.py::test_a_body_that_is_too_long_is_not_read
    autotune/service/test_access.py::test_a_body_that_does_not_come_is_not_waited_for
other holders of tokens cannot use up the threads that answer you
    autotune/service/test_workers.py::test_each_kind_of_caller_has_workers_and_places_of_its_own
    autotune/service/test_access.py::test_too_many_at_once_are_sent_away_and_those_who_wait_count_apart
    autotune/service/test_flood.py::test_the_owner_is_answered_while_a_token_holder_floods_the_service
A connection that sends no headers is closed
    autotune/service/test_connections.py::test_who_does_not_come_to_the_end_of_a_request_is_let_go
strangers cannot shut you out
    autotune/service/test_connections.py::test_a_stranger_of_this_host_cannot_shut_the_owner_out
    autotune/service/test_connections.py::test_where_callers_of_one_kind_have_too_many_the_oldest_is_closed
the page's files need no token
    autotune/service/test_refusals.py::test_what_is_refused_gets_what_the_table_says
have `~` for your home folder
    autotune/service/test_json_values.py::test_the_home_folder_is_a_tilde
Names of studies have no slash
    autotune/supervision/test_desired_state.py::test_what_is_no_order_is_refused
are in a folder of mode 0700
    autotune/supervision/test_supervisor.py::test_only_its_user_may_look_into_the_folder
Studies are started with an argument list
    autotune/supervision/test_desired_state.py::test_no_value_of_an_order_is_taken_for_an_option_or_for_a_shell
No process that autotune starts imports modules from it
    autotune/test_current_folder.py::test_every_python_that_is_started_ignores_the_current_folder
    autotune/test_current_folder.py::test_rays_workers_get_no_folder_of_this_process
Nor does the command `autotune`
    autotune/test_current_folder.py::test_a_command_imports_nothing_from_the_current_folder
an empty entry of `PYTHONPATH` is ignored
    autotune/test_current_folder.py::test_an_empty_entry_of_pythonpath_does_not_mean_the_current_folder
lists which requests are refused
    autotune/service/test_refusals.py::test_the_table_has_the_rows_that_are_tested
asks every process that connects for a token
    autotune/execution/test_ray_node.py::test_only_the_token_of_a_node_lets_a_process_in
a folder of mode 0700 beside the study
    autotune/execution/test_ray_node.py::test_a_meeting_place_that_others_may_enter_is_refused
    autotune/batch/test_pilot_job.py::test_nodes_are_started_once_a_host_and_ended_whatever_happens
`RAY_AUTH_MODE=disabled` in the environment is refused
    autotune/execution/test_ray_access.py::test_an_environment_that_lets_everybody_in_is_refused
which Ray makes readable for others, is not used
    autotune/execution/test_ray_node.py::test_rays_workers_are_as_nice_as_others_and_only_this_user_may_talk_to_them
`autotune doctor` warns if others can read it
    autotune/execution/test_ray_access.py::test_a_token_of_rays_own_that_others_can_read_is_named
A storage in a file and the locks beside it
    autotune/storage/test_permissions.py::test_only_its_user_can_open_a_storage
    autotune/storage/test_permissions.py::test_a_folder_is_shared_by_its_group_on_purpose
    autotune/storage/test_permissions.py::test_a_lock_that_others_could_hold_is_closed_to_them_by_its_next_holder
views and triggers call no function with effects
    autotune/storage/test_damage.py::test_a_strange_storage_runs_no_function_of_its_own
are the system's (`flock`)
    autotune/storage/test_study_lock.py::test_a_second_one_is_told_who_where_and_since_when_and_what_to_do
A lock file is never opened through a link
    autotune/test_locks.py::test_a_link_to_another_file_is_refused_and_the_file_stays
    autotune/test_locks.py::test_another_file_that_stands_there_by_a_hard_link_is_not_written_over
is used only if it is your folder
    autotune/execution/test_user_folder.py::test_a_folder_that_others_may_enter_is_refused
if another user has made it, all your processes use another one
    autotune/execution/test_user_folder.py::test_another_user_who_has_made_the_folder_locks_nobody_out
`--take-over` signals a process only if
    autotune/storage/test_study_lock.py::test_a_process_that_does_not_hold_the_study_is_not_asked_to_stop
    autotune/storage/test_study_lock.py::test_a_holder_on_another_host_is_not_touched_from_here
can be changed by you alone, whatever your umask
    autotune/execution/test_run_folder.py::test_nobody_else_changes_what_a_session_makes
    autotune/execution/test_task.py::test_files_of_a_run_have_the_modes_of_the_session_also_if_a_process_elsewhere_makes_them
are never printed, nor passed on a command line
    autotune/storage/test_postgresql.py::test_what_is_wrong_with_an_address_is_said_without_its_password
    autotune/supervision/test_desired_state.py::test_a_password_of_the_storage_is_on_no_command_line
`autotune pilot` refuses an address with a password
    autotune/cli/test_pilot_options.py::test_a_password_does_not_get_into_the_script
are neither stored nor shown
    autotune/planning/test_check_secrets.py::test_a_secret_is_not_part_of_what_is_stored_and_is_asked_for_where_it_is_missing
values of variables and of options
    launchers/test_secret.py::test_secrets_in_commands_and_urls_of_a_study_file_are_not_stored
    launchers/test_secret.py::test_passwords_in_urls_are_masked
prints control characters, terminal escapes
    autotune/cli/test_hostile_text.py::test_no_command_prints_what_a_terminal_obeys
    autotune/cli/test_hostile_text.py::test_a_cell_and_a_record_of_a_log_are_one_line
Only a script that goes into a pipe or a file keeps them
    autotune/cli/test_hostile_text.py::test_a_script_is_exact_in_a_pipe_and_harmless_in_a_terminal
Only you can read the file that brings secrets to a batch job
    launchers/test_submitting.py::test_only_this_user_may_read_what_a_job_gets
Other studies do not start Ray
    autotune/coordination/test_places.py::test_only_a_cluster_needs_ray
"""
# Words of a sentence, and the tests that show it.
SHOWN = {words: tests.split() for words, tests in re.findall(r"^(\S.*)\n((?:    \S+\n)+)", _PAIRS, re.MULTILINE)}
# Words of sentences that promise nothing: whom a user trusts, what is not protected, and advice.
NO_PROMISE = (
    *("This page says whom you trust", "Report a weakness", "Name the version", "no release yet"),
    *("the author of a", "the file names programs", "are lines of a job script", "packages installed beside"),
    *("their entry points add", "anybody who can", "`best --script` prints it"),
    *("a measured program", "it runs in no sandbox", "the holder of a token", "`look` reads", "`ask` also asks"),
    *("other users of the host", "other users of a Ray cluster", "everything in the studies that run there"),
    *("Treat somebody else's", "`check`, `--dry-run` and predictions", "run the study file that is stored"),
    "Tokens for others",
    *("are in answers, job scripts and reports", "a process that has it", "Keep them in"),
    *("Others are stored, and so is", "look before you publish", "travel unencrypted", "So does Ray's traffic between"),
    *("Some of Ray's processes listen", "can be read as your umask allows", "use `umask 077`"),
    "have the umask of a login",
    *("PyTorch without hashes", "and one engine of", "What `dna`, `ddp`, `fusion` and `backends` add"),
    *("dependencies are not pinned", "Your pip's settings", "To use a Python that you installed"),
    *(
        "A study file is not signed",
        "begins in the current folder",
        "The same holds for an empty entry",
        "The current folder.",
    ),
)


def sentences():
    """Return the sentences of the page, without headings and emphasis; a cell of a table is one, or several."""
    text = re.sub(r"^#.*$", "\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    blocks = []
    for paragraph in re.split(r"\n\s*\n|\n(?=- |\|)", text):
        line = " ".join(paragraph.split()).replace("**", "")
        blocks += line.strip("|").split("|") if line.startswith("|") else [line.removeprefix("- ")]
    found = [part.strip() for block in blocks for part in re.split(r"(?<=[.;:])\s+(?=[A-Z`~])", block.strip())]
    return [sentence for sentence in found if len(sentence.split()) > 2]


@pytest.mark.parametrize("sentence", sentences())
def test_a_sentence_has_a_test_or_promises_nothing(sentence):
    assert any(words in sentence for words in (*SHOWN, *NO_PROMISE)), "name a test that shows it, in SHOWN"


def test_there_is_no_pair_without_a_sentence():
    text = "\n".join(sentences())
    assert [words for words in (*SHOWN, *NO_PROMISE) if words not in text] == []


@cache
def functions_of(path):
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("test", sorted({test for tests in SHOWN.values() for test in tests}))
def test_a_test_that_is_named_is_there(test):
    path, _, name = test.partition("::")
    assert name in functions_of(path)


def called(path):
    """Return the names of functions that a module calls, and the modules that it imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr=name)):
                yield f"{of}.{name}"
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(name)):
                yield name


@cache
def all_called():
    return {(name, path.name) for path in SOURCES for name in called(path)}


@pytest.mark.slow
def test_nothing_changes_its_user():
    kinds = [f"set{kind}{of}id" for kind in ("", "e", "re", "res") for of in "ug"]
    changes = {f"os.{name}" for name in (*kinds, "setgroups", "initgroups", "chown", "lchown")}
    assert {name for name, _ in all_called()} & changes == set()
    words = {
        word for path in SOURCES for word in re.findall(r"[\"'](sudo|su|pkexec|doas)[\"']", path.read_text("utf-8"))
    }
    assert words == set()


@pytest.mark.slow
def test_no_text_is_executed_and_nothing_is_unpickled():
    executes = {"eval", "exec", "compile", "os.system", "os.popen", "subprocess.getoutput"}
    unpickles = {f"{name}.{how}" for name in ("pickle", "cloudpickle", "marshal", "yaml") for how in ("load", "loads")}
    assert {entry for entry in all_called() if entry[0] in executes | unpickles | {"shelve", "dill"}} == set()


def test_the_service_listens_on_the_loopback_address(tmp_path):
    from autotune.service.settings import Settings  # noqa: PLC0415  FastAPI takes a while

    assert Settings.__dataclass_fields__["host"].default == "127.0.0.1"


def test_the_figures_of_the_page_are_those_of_the_service():
    from autotune.service.settings import Limits  # noqa: PLC0415  FastAPI takes a while

    limits, page = Limits(), " ".join(PAGE.read_text(encoding="utf-8").split())
    for said in (
        f"A body has at most {limits.body_bytes // 1024} KiB and {limits.body_s:g} s to arrive",
        f"at most {limits.at_once} requests run, and {limits.followers} wait",
        f"A connection that sends no headers is closed after {limits.headers_s:g} s",
        f"At most {limits.anonymous_connections} connections have shown no token",
    ):
        assert said in page


def test_no_request_makes_a_token(tmp_path):
    from autotune.service.routes.app import create_app  # noqa: PLC0415  FastAPI takes a while
    from autotune.service.settings import Settings  # noqa: PLC0415

    app = create_app(Settings(f"sqlite:///{tmp_path / 'autotune.db'}", tmp_path / "service"))
    assert [path for path in app.openapi()["paths"] if "token" in path.lower()] == []
    routes = [path for path in SOURCES if path.parent.name == "routes"]
    assert {name for path in routes for name in called(path)} & {"TokenBook.add", "book.add", "start_token"} == set()


def test_the_page_writes_no_markup():
    scripts = [path.read_text(encoding="utf-8") for path in (ROOT / "autotune" / "service" / "page").glob("*.js")]
    assert len(scripts) > 10
    markup = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc|\beval\b"
    )
    assert [found for script in scripts for found in re.findall(markup, script)] == []


def test_nothing_sets_a_cookie():
    service = ROOT / "autotune" / "service"
    texts = [path.read_text(encoding="utf-8") for path in (*service.rglob("*.js"), *service.rglob("*.py"))]
    assert [found for text in texts for found in re.findall(r"document\.cookie|set_cookie|(?i:set-cookie)", text)] == []


def test_tokens_are_long_and_compared_in_constant_time():
    names = set(called(ROOT / "autotune" / "service" / "tokens.py"))
    assert {"secrets.token_urlsafe", "hmac.compare_digest"} <= names
    assert "token_urlsafe(32)" in (ROOT / "autotune" / "service" / "tokens.py").read_text(encoding="utf-8")


def test_installed_packages_have_hashes():
    assert '--require-hashes -r "$root/$lock"' in (ROOT / "run").read_text(encoding="utf-8")
    for lock in ("run.lock", "test.lock", "bigdata.txt", "inference.txt", "llm.txt", "ucx.txt"):
        text = (ROOT / "requirements" / lock).read_text(encoding="utf-8").replace("\\\n", " ")
        wanted = [line for line in text.splitlines() if re.match(r"\w", line)]
        assert [line.split()[0] for line in wanted if "--hash=sha256:" not in line] == []
