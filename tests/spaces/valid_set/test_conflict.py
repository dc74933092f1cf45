"""Empty spaces say why, and no more than why."""

import pytest
from hypothesis import HealthCheck, assume, given, settings

from spaces import Constraint, Flag, Integer, Space, SpaceError
from spaces.valid_set.conflict import minimal_conflict
from spaces.valid_set.diagram import EmptyError, build
from tests.spaces.reference import valid_configurations
from tests.spaces.strategies import spaces_parts


def test_names_the_constraints_that_clash_with_their_reasons():
    space = Space(
        [Integer.range("np", 1, 8), Integer.range("npool", 1, 4), Flag("gpu")],
        [
            Constraint("fine", "np >= npool", "fine"),
            Constraint("many", "np > 5", "memory"),
            Constraint("fine too", "gpu or np > 1"),
            Constraint("few", "np * npool < 6", "cores"),
        ],
    )
    with pytest.raises(SpaceError) as caught:
        _ = space.size
    assert tuple(map(str, caught.value.problems)) == (
        "no configuration is valid: these constraints cannot all hold:",
        "  many: np > 5 (memory)",
        "  few: np * npool < 6 (cores)",
    )


def test_a_constraint_over_facts_can_be_false():
    space = Space([Flag("gpu")], [Constraint("nodes", "nodes > 1", "it is a cluster")], {"nodes": 1})
    assert space.violations({"gpu": True}) == ["nodes: nodes > 1 (it is a cluster): not so with nodes=1"]
    with pytest.raises(SpaceError, match="this constraint never holds: nodes: nodes > 1"):
        _ = space.size


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(spaces_parts())
def test_a_conflict_is_minimal(parts):
    parameters, constraints, facts = parts
    space = Space(parameters, constraints, facts)
    assume(space.raw_size <= 1000)
    assume(not valid_configurations(*parts))
    with pytest.raises(SpaceError) as caught:
        _ = space.size
    lines = str(caught.value).splitlines()
    if len(lines) == 1:
        names = {lines[0].removeprefix("no configuration is valid: this constraint never holds: ")[:2]}
    else:
        names = {line.strip()[:2] for line in lines[1:]}
    clash = [c for c in constraints if c.name in names]
    assert len(clash) == len(names)
    assert not valid_configurations(parameters, clash, facts)
    for spared in clash:
        assert valid_configurations(parameters, [c for c in clash if c is not spared], facts)


def test_pigeons():
    holes = [Integer.range(f"p{k}", 1, 4) for k in range(5)]
    apart = [Constraint(f"d{i}{j}", f"p{i} != p{j}") for i in range(5) for j in range(i)]
    ready = Space(holes, [*apart, Constraint("idle", "p0 < 9")])._ready
    conflict = minimal_conflict(ready.domains, ready.constraints, ())
    assert {rule.constraint.name for rule in conflict} == {c.name for c in apart}
    with pytest.raises(EmptyError):
        build(ready.domains, ready.constraints)
