import pytest

from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError
from autotune.service.models.budgets import Budget

BUDGET = Budget(studies=2, trials=50, time_s=3600.0)


def test_an_agent_gets_what_its_owner_allows_and_no_more():
    assert BUDGET.trials_of(None, 200) == BUDGET.trials_of(50, 10) == 50
    assert BUDGET.trials_of(3, 10) == 3
    assert BUDGET.time_of(None, None) == BUDGET.time_of(None, 7200.0) == BUDGET.time_of("1h", 60.0) == "3600s"
    assert BUDGET.time_of("90", None) == "90s"
    assert parse_duration_s(Budget(time_s=1_234_567.5).time_of(None, None)) == 1_234_567.5
    for wanted in (51, "auto"):
        with pytest.raises(AutotuneError, match=f"trials: {wanted} was given; the budget allows 50"):
            BUDGET.trials_of(wanted, 10)
    for wanted in ("2h", "1e9s", "-5s", "", "nan"):
        with pytest.raises(AutotuneError, match="timeout"):
            BUDGET.time_of(wanted, None)


def test_a_study_file_that_allows_less_than_the_budget_counts_unless_more_is_asked_for():
    assert BUDGET.trials_of(None, 10) == 10
    assert BUDGET.time_of(None, 60.0) == "60s"


def test_studies_are_counted_where_they_are_stored():
    assert BUDGET.name_of("qe", {"qe", "other"}) == "agent-qe"
    assert BUDGET.name_of("agent-b", {"agent-a"}) == "agent-b"
    with pytest.raises(AutotuneError, match="study 'agent-qe' exists already"):
        BUDGET.name_of("qe", {"agent-qe"})
    with pytest.raises(AutotuneError, match="the budget allows 2"):
        BUDGET.name_of("c", {"agent-a", "agent-b"})
    with pytest.raises(AutotuneError, match="has 101 characters; it must have 100 at most"):
        BUDGET.name_of("x" * 95, set())
