import pytest

from autotune.agents.budgets import AgentBudgets
from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError

BUDGETS = AgentBudgets(studies=2, trials=50, time_s=3600.0)


def test_an_agent_gets_what_its_owner_allows_and_no_more():
    assert BUDGETS.trials_of(None) == BUDGETS.trials_of(50) == 50
    assert BUDGETS.trials_of(3) == 3
    assert BUDGETS.time_of(None) == BUDGETS.time_of("1h") == "3600s"
    assert BUDGETS.time_of("90") == "90s"
    assert parse_duration_s(AgentBudgets(time_s=1_234_567.5).time_of(None)) == 1_234_567.5
    with pytest.raises(AutotuneError, match="51 was given; an agent may have 50"):
        BUDGETS.trials_of(51)
    for wanted in ("2h", "1e9s", "-5s", "", "nan"):
        with pytest.raises(AutotuneError, match="timeout"):
            BUDGETS.time_of(wanted)


def test_studies_are_counted_where_they_are_stored():
    assert BUDGETS.name_of("qe", {"qe", "other"}) == "agent-qe"
    assert BUDGETS.name_of("agent-b", {"agent-a"}) == "agent-b"
    with pytest.raises(AutotuneError, match="study 'agent-qe' exists already"):
        BUDGETS.name_of("qe", {"agent-qe"})
    with pytest.raises(AutotuneError, match="an agent may have 2"):
        BUDGETS.name_of("c", {"agent-a", "agent-b"})
