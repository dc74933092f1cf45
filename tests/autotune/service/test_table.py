"""The table of a study's trials: chosen and sorted by the service, a part at a time, and as a file."""

import asyncio
import json
from dataclasses import replace

import httpx
import pytest
from fastapi import FastAPI

from autotune.service.callers import CallerKind
from autotune.service.limiter import Limiter
from autotune.service.problems import handle_problems
from autotune.service.routes.trials import routes
from autotune.service.settings import Limits
from autotune.service.studies import AnswerKey
from tests.autotune.pictures.studies import summary, trial
from tests.autotune.results.test_summary import JOB
from tests.support.fakes import capped, took


class Stored:
    """A study of 70 trials, and a replay of the same, which has the commands that were recorded."""

    def summary(self, name, version=1):
        trials = (trial(number, took(5.0 - number / 20.0), np=1 + number % 4) for number in range(69))
        found = summary(*trials, trial(69, capped(6.0), np=3))
        return replace(found, definition=replace(found.definition, objective=name))

    def store(self, name):
        return self

    def runs(self):
        return [replace(trial(3, took(2.0)).runs[0], job=JOB)]

    def key(self, name, *asked):
        return AnswerKey(name, 1, asked)


@pytest.fixture(scope="module")
def asked():
    app = FastAPI()
    app.include_router(routes(Stored()))
    handle_problems(app)
    limited = Limiter(app, Limits())

    async def served(scope, receive, send):
        await limited({**scope, "state": {"caller": CallerKind.OWN}}, receive, send)

    async def answer(path, name):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://paper") as client:
            return await client.get(f"/studies/{name}/{path}")

    return lambda path, name="paper": asyncio.run(answer(path, name))


def test_only_a_part_is_sent_and_the_whole_is_counted(asked):
    found = asked("table?sort=value&offset=20&limit=5").json()
    assert [one["trial"] for one in found["trials"]] == [48, 47, 46, 45, 44]
    assert (found["total"], found["states"]) == (70, {"capped": 1, "complete": 69})
    assert found["parameters"][0] == "np"
    assert asked("table?offset=70").json()["trials"] == []


def test_the_file_has_every_trial_that_is_wanted(asked):
    file = asked("table.csv?where=np%20%3D%203&sort=value&down=true")
    assert file.headers["Content-Disposition"] == 'attachment; filename="paper-trials.csv"'
    lines = file.text.splitlines()
    assert lines[0].startswith("trial,state,runs,value")
    assert [line.split(",")[0] for line in lines[1:4]] == ["2", "6", "10"]
    assert lines[-1].startswith("69,capped")
    assert [one["trial"] for one in json.loads(asked("table.json?state=capped").text)] == [69]


def test_a_run_has_its_command_but_one_of_a_replay_has_none(asked):
    (run,) = asked("trials/3").json()["made"]
    assert run["commands"][0].endswith("""pw.x -nk 2 -inp 'it'"'"'s.in'""")
    (recorded,) = asked("trials/3", "replay").json()["made"]
    assert (recorded["text"], recorded["commands"]) == ("2 s", [])


def test_a_mistake_names_its_field(asked):
    refused = asked("table?where=np%20is%203")
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("where: 'np is 3' is not a comparison")
    assert asked("table?sort=nothing").json()["detail"].startswith("sort: 'nothing' is neither")
