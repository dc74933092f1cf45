"""An agent's connection to a service that does not always answer."""

import pytest

from autotune.client import Client
from autotune.service.models.budgets import Budget
from autotune.service.scopes import Scope

pytest.importorskip("mcp", reason="the extra `agents` is not installed")

from autotune.agents.server import Agent


def test_a_run_whose_answer_was_lost_is_asked_for_again_by_the_same_key(monkeypatch):
    keys = []

    def lost_at_first(self, method, path, body=None, wait_s=0.0):
        keys.append(body["key"])
        if len(keys) == 1:
            msg = "timed out"
            raise TimeoutError(msg)

    monkeypatch.setattr(Client, "_call", lost_at_first)
    agent = Agent("http://localhost:1", None, Scope.OPERATE, Budget(studies=1, trials=10, time_s=60.0))
    answers = [agent.call("ask", {"study": "mine"}) for _ in range(3)]
    assert [bool(answer.is_error) for answer in answers] == [True, False, False]
    assert keys[0] == keys[1] != keys[2]
