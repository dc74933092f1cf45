"""Agents: the protocol's client library against a real service, which refuses scripted attacks."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

import autotune
from autotune.client import TOKEN_VARIABLE, Client, ServiceError
from autotune.execution.user_folder import user_folder
from autotune.service.models.budgets import Budget
from autotune.service.scopes import Scope
from tests.autotune.service.serving import serving

mcp = pytest.importorskip("mcp", reason="the extra `agents` is not installed")

from mcp.client.stdio import StdioServerParameters  # noqa: E402

from autotune.agents.server import Agent, server_of  # noqa: E402

# The studies that agents start claim a core.
pytestmark = [pytest.mark.slow, pytest.mark.cores(1)]

LOOK = ["list_studies", "list_catalogue", "study_status", "list_trials", "describe_space", "get_result", "explain"]
SECRET = "3xtr3m3ly-s3cr3t"
BUDGET = Budget(studies=1, trials=10, time_s=60.0)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("agents")) as found:
        # Opening the first study imports much, which takes long on a busy machine.
        with Client(found.url, timeout_s=600.0) as client:
            client.start("outside", trials=100)
        yield found


@pytest.fixture(autouse=True)
def secrets(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", SECRET)


def agent(service, scope=Scope.OPERATE):
    return Agent(service.url, None, scope, BUDGET)


def used(server, *calls):
    """Return the answers to calls, one after the other: whether each is a refusal, its text, and its structure."""
    answers = []

    async def main():
        async with mcp.Client(server) as client:
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                answers.append((bool(result.is_error), result.content[0].text, result.structured_content))

    anyio.run(main)
    return answers


def said(answer):
    refused, text, structure = answer
    assert not refused, text
    assert json.loads(text) == structure
    return structure


def tools_of(server):
    async def main():
        async with mcp.Client(server) as client:
            return (await client.list_tools()).tools

    return {tool.name: tool for tool in anyio.run(main)}


def test_an_agent_suggests_measures_and_learns_why(service):
    server = server_of(agent(service))
    first = said(used(server, ("ask", {"study": "outside", "wait_s": 10}))[0])
    assert first["configuration"] == {"a": 5, "b": 5}
    space, *_, suggested, listed = used(
        server,
        ("describe_space", {"study": "outside"}),
        ("tell", {"study": "outside", "lease": first["lease"], "value": 9.0}),
        ("suggest", {"study": "outside", "configuration": {"a": 2, "b": 4}, "why": "small parts"}),
        ("list_hints", {"study": "outside"}),
    )
    assert "a divides b" in said(space)["configuration"]["description"]
    assert "trial" not in said(suggested)
    assert [hint["configuration"] for hint in said(listed)["items"]] == [{"a": 2, "b": 4}]
    tried = None
    for _ in range(60):
        run = said(used(server, ("ask", {"study": "outside", "wait_s": 10}))[0])
        value = 1.0 if run["configuration"] == {"a": 2, "b": 4} else 8.0
        used(server, ("tell", {"study": "outside", "lease": run["lease"], "value": value}))
        if value == 1.0:
            tried = run["trial"]
            break
    assert tried is not None, "the first hint is tried soon"
    explained = said(used(server, ("explain", {"study": "outside", "trial": tried}))[0])
    assert explained["proposed"] == "as a hint of this user"
    assert explained["hint"]["why"] == "small parts"
    result = said(used(server, ("get_result", {"study": "outside"}))[0])
    assert result["best"]["configuration"] == {"a": 2, "b": 4}
    assert "verdict" not in result
    status = said(used(server, ("study_status", {"study": "outside", "wait_s": 2, "until": "changed"}))[0])
    assert status["incumbent"]["configuration"] == {"a": 2, "b": 4}
    best = said(used(server, ("list_trials", {"study": "outside", "limit": 1}))[0])["trials"]
    assert [row["configuration"] for row in best] == [{"a": 2, "b": 4}]


def test_the_tools_are_those_of_the_scope_and_the_space_is_in_the_schema(service):
    for scope, more in ((Scope.LOOK, []), (Scope.ASK, ["suggest", "ask", "tell", "renew"])):
        found = tools_of(server_of(agent(service, scope)))
        assert set(found) == {*LOOK, "predict", "check_study_file", "list_hints", *more}
    schema = found["suggest"].input_schema["properties"]["configuration"]["anyOf"][0]
    assert schema["title"] == "study outside"
    assert schema["properties"]["a"]["enum"][:3] == [1, 2, 3]
    assert found["list_studies"].annotations.read_only_hint


FILE = """
objective = "command"
[options]
argv = ["sh", "-c", "touch {mark}"]
prepare = [["touch", "{mark}"]]
[sampler]
name = "os:system"
[space.parameters.a]
type = "integer"
low = 1
high = 2
"""

# Attacks, each with a word of the refusal.
ATTACKS = [
    ("suggest", {"study": "outside", "configuration": {"a": 3, "b": 4}}, "the parts are equal"),
    ("suggest", {"study": "outside", "configuration": {"a": 3, "b": "$(reboot)"}}, "not one of its values"),
    ("suggest", {"study": "outside", "configuration": {"a": 1, "b": 1, "argv": "sh"}}, "argv"),
    ("suggest", {"study": "outside", "configuration": {"a": 1e308, "b": 0}}, "not one of its values"),
    ("suggest", {"study": "outside", "configuration": {"a": 7, "b": 7, "x" * 300: 1}}, "refused"),
    ("suggest", {"study": "outside", "configuration": {"a": [[[1]]], "b": 1}}, "configuration"),
    ("suggest", {"study": "outside", "configuration": {"a": 7, "b": 7}, "why": "x" * 501}, "why"),
    ("suggest", {"study": "../../etc/passwd", "configuration": {}}, "study"),
    ("suggest", {"study": "nobody", "configuration": {}}, "nobody"),
    ("study_status", {"study": "..%2f..%2ftokens"}, "study"),
    ("list_trials", {"study": "outside", "limit": 10**9}, "limit"),
    ("explain", {"study": "outside", "trial": 2**40}, "trial"),
    ("tell", {"study": "outside", "lease": "guessed", "value": 1e-9}, "lease"),
    ("tell", {"study": "outside", "lease": "guessed"}, "refused"),
    ("tell", {"study": "outside", "lease": "x" * 1000, "value": 1.0}, "lease"),
    ("ask", {"study": "sleepy"}, "sleepy"),
    ("ask", {"study": "outside", "lease_s": 1e300}, "lease_s"),
    ("predict", {"study": "outside", "machine": "../../etc/passwd"}, "machine"),
    ("check_study_file", {"text": "x" * 100_000}, "text"),
    ("start_study", {"study": "sleepy", "trials": 11}, "11 was given; the budget allows 10"),
    ("start_study", {"study": "sleepy", "trials": -1}, "trials"),
    ("start_study", {"study": "sleepy", "trials": "auto"}, "trials"),
    ("start_study", {"study": "sleepy", "timeout": "1d"}, "the budget allows 60s"),
    ("start_study", {"study": "sleepy", "workers": 1000}, "workers"),
    ("start_study", {"study": "sleepy", "options": {"argv": ["sh"]}}, "options"),
    ("start_study", {"study": "/tmp/mine.toml"}, "study"),
    ("start_study", {"study": "not-there"}, "catalogue"),
    ("start_study", {"study": "sleepy", "name": "../x"}, "name"),
    ("delete_study", {"study": "outside"}, "no tool"),
    ("stop_study", {"study": "outside"}, "no tool"),
    ("__import__", {"x": "os"}, "no tool"),
]


def test_an_adversary_launches_nothing_and_learns_no_secret(service):
    with service.client() as client:
        before = (client.studies(), client.hints("outside"))
    answers = used(server_of(agent(service)), *[attack[:2] for attack in ATTACKS])
    for (name, arguments, word), (refused, text, _) in zip(ATTACKS, answers, strict=True):
        assert refused, (name, arguments, text)
        assert word in text, (name, arguments, text)
        for hidden in (SECRET, "Traceback", f"{Path.home()}/"):
            assert hidden not in text
    with service.client() as client:
        assert (client.studies(), client.hints("outside")) == before


def test_a_study_file_of_a_model_is_only_read(service, tmp_path):
    mark = tmp_path / "was-run"
    file = FILE.replace("{mark}", str(mark))
    for text in (file, "= broken", "[" * 5000, "[options]\nargv = '/etc/passwd'\n", "\x00"):
        [(refused, answer, _)] = used(server_of(agent(service)), ("check_study_file", {"text": text}))
        assert not refused, answer
        found = json.loads(answer)
        assert "only the owner can put a study file into the catalogue" in found["next"]
        assert found["valid"] is False or text == file
        assert "root:" not in answer
    assert not mark.exists()


@pytest.mark.full
def test_no_budget_is_overrun_however_often_and_at_once_it_is_tried(service):
    calls = [("start_study", {"study": "sleepy", "name": f"n{number}", "trials": 2}) for number in range(6)]
    with ThreadPoolExecutor(len(calls)) as threads:  # each is an agent with a connection of its own
        answers = list(threads.map(lambda call: used(server_of(agent(service)), call)[0], calls))
    later = used(server_of(agent(service)), *calls) + used(server_of(agent(service, Scope.ASK)), *calls)
    started = [text for refused, text, _ in answers if not refused]
    assert len(started) == 1
    assert all(refused for refused, *_ in later), "a new connection brings no new budget"
    with service.client() as client:
        [mine] = [study for study in client.studies() if study["name"].startswith("agent-")]
        assert mine["budget"] == 2
        with suppress(ServiceError):  # it has ended
            client.stop(mine["name"])


def test_the_command_speaks_the_protocol_and_its_token_is_no_more_than_its_scope(service, monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    argv = ["-m", "autotune", "mcp", "--service", service.url, "--scope", "look"]
    # The protocol's library hands on few variables; these say where the tests' services keep their tokens, and which
    # autotune is tested.
    variables = {"AUTOTUNE_USER_FOLDER": str(user_folder()), "PYTHONPATH": str(Path(autotune.__file__).parents[1])}
    parameters = StdioServerParameters(command=sys.executable, args=argv, cwd=service.folder, env=variables)
    studies, refused = used(parameters, ("list_studies", {}), ("ask", {"study": "outside"}))
    assert "outside" in [study["name"] for study in said(studies)["studies"]]
    assert refused[0]
    assert "no tool" in refused[1]


@pytest.mark.full
def test_a_service_that_is_away_is_said_in_words():
    gone = Agent("http://127.0.0.1:9", None, Scope.LOOK, BUDGET)
    [(refused, text, _)] = used(server_of(gone), ("list_studies", {}))
    assert refused
    assert "autotune serve" in text
