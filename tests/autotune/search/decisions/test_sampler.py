import numpy as np
import pytest
from optuna.study import StudyDirection

from autotune.errors import StudyFileError
from autotune.search.base import History, SpaceExhaustedError
from autotune.search.decisions.cell_model import Kernels, fit_cell_model
from autotune.search.decisions.choices import choose_settings
from autotune.search.decisions.grid import Grid
from autotune.search.decisions.registry import sampler_of_study
from autotune.search.decisions.sampler import DecisionSampler
from autotune.search.decisions.weights import Usage
from autotune.storage.observation import Observation
from spaces import Choice, Constraint, Integer, Space
from tests.support.fakes import study_file

SIZES = tuple(2**k for k in range(3, 15))
SPACE = Space(
    [
        Choice("op", ("sum", "copy"), default="sum"),
        Integer("bytes", SIZES, default=SIZES[0]),
        Choice("way", ("own", "tree", "ring"), default="own"),
        Integer("parts", (1, 4), default=4, when="way == 'ring'"),
    ],
    [Constraint("no", "op == 'sum' or way != 'ring' or parts == 4", "copies have four parts")],
)
COSTS = {"own": (6.0, 0.006), "tree": (2.0, 0.01), "ring": (12.0, 0.002)}


def cost(configuration, scale=1.0):
    start, each = COSTS[configuration["way"]]
    return scale * (start + each * configuration["bytes"]) * (1.0 + 0.2 * (configuration.get("parts") == 1))


def spent(count, sign=1.0):
    sampler, rng = DecisionSampler(SPACE, ("op", "bytes"), seed=1), np.random.default_rng(1)
    rows, seen, proposed = SPACE.indices([]).reshape(0, 4), [], []
    direction = StudyDirection.MINIMIZE if sign > 0 else StudyDirection.MAXIMIZE
    for _ in range(count):
        configuration = sampler.propose(History(rows, seen, direction))
        proposed.append(configuration)
        rows = np.concatenate([rows, SPACE.indices([configuration])])
        seen.append(Observation((cost(configuration) * np.exp(0.03 * rng.standard_normal())) ** sign))
    return sampler, rows, seen, proposed


def test_the_default_comes_first_in_contexts_far_from_each_other():
    _, _, _, proposed = spent(5)
    assert {one["way"] for one in proposed} == {"own"}
    assert {one["op"] for one in proposed} == {"sum", "copy"}
    assert {min(SIZES), max(SIZES)} <= {one["bytes"] for one in proposed}


def test_proposals_are_valid_new_and_follow_from_seed_and_trials():
    _, _, _, proposed = spent(30)
    assert all(SPACE.contains(one) for one in proposed)
    assert len({tuple(sorted(one.items())) for one in proposed}) == 30
    assert spent(30)[3] == proposed


@pytest.mark.slow
def test_a_table_of_a_few_runs_is_nearly_right_and_never_worse_than_the_default():
    for sign in (1.0, -1.0):
        sampler, rows, seen, _ = spent(34, sign)
        cell_model = fit_cell_model(sampler.grid, rows, seen, sign, Kernels(0))
        ratios = []
        for choice in choose_settings(cell_model, rows, 0.95):
            (chosen,), (default,) = (
                SPACE.decode(one[None, :]) for one in (choice.row, sampler.grid.defaults[choice.context])
            )
            context = {name: default[name] for name in ("op", "bytes")}
            best = min(cost({**context, "way": way}) for way in COSTS)
            assert {name: chosen[name] for name in context} == context
            assert cost(chosen) <= 1.01 * cost(default)
            ratios.append(cost(chosen) / best)
        assert len(ratios) == 24
        assert np.exp(np.mean(np.log(ratios))) < 1.06


def test_a_run_of_several_points_tells_of_all_of_them():
    space = Space([Choice("op", ("sum", "copy"), default="sum"), Choice("way", tuple(COSTS), default="own")], [])
    rows = space.all_indices()
    seen = [
        Observation(1.0, points=tuple((float(size), cost({**one, "bytes": size})) for size in (0, *SIZES)))
        for one in space.decode(rows)
    ]
    cell_model = fit_cell_model(Grid(space, ("op",)), rows, seen, 1.0, Kernels(0))
    found = {
        (one.context, one.point): space.decode(one.row[None, :])[0]["way"]
        for one in choose_settings(cell_model, rows, 0.95)
    }
    assert len(found) == 2 * 13
    assert found[0, 8.0] == found[1, 0.0] == "tree"
    assert found[0, float(SIZES[-1])] == "ring"


def test_each_context_has_its_own_points_and_one_without_runs_those_of_the_nearest():
    ranks = Integer("ranks", (2, 4), default=2)
    ops = Choice("op", ("sum", "barrier"), default="sum")
    space = Space([ops, ranks, Choice("way", tuple(COSTS), default="own")], [])
    ran = [{"op": op, "ranks": 2, "way": way} for op in ("sum", "barrier") for way in COSTS]
    rows = space.indices(ran)
    sizes = {"sum": SIZES, "barrier": (0,)}
    seen = [
        Observation(1.0, points=tuple((float(size), cost({**one, "bytes": size})) for size in sizes[one["op"]]))
        for one in ran
    ]
    grid = Grid(space, ("op", "ranks"))
    found = choose_settings(fit_cell_model(grid, rows, seen, 1.0, Kernels(0)), rows, 0.95)
    cells = {(*grid.contexts[one.context].values(), one.point) for one in found}
    assert cells == {(op, ranks, float(size)) for op, own in sizes.items() for ranks in (2, 4) for size in own}


def test_a_setting_that_always_fails_is_not_chosen():
    sampler, rows, seen, proposed = spent(34)
    failed = [Observation() if one["way"] == "tree" else observed for one, observed in zip(proposed, seen, strict=True)]
    cell_model = fit_cell_model(sampler.grid, rows, failed, 1.0, Kernels(0))
    assert "tree" not in {SPACE.decode(one.row[None, :])[0]["way"] for one in choose_settings(cell_model, rows, 0.95)}
    history = History(rows, failed, StudyDirection.MINIMIZE)
    assert sampler.propose(history)["way"] != "tree"


def test_a_context_without_a_valid_default_is_none_of_the_table():
    space = Space(SPACE.parameters, [Constraint("no", "op == 'sum' or way == 'tree'", "copies have trees")])
    contexts = Grid(space, ("op", "bytes")).contexts
    assert {one["op"] for one in contexts} >= {"sum"}
    assert all(space.contains(one) for one in space.decode(Grid(space, ("op", "bytes")).defaults))


def test_too_many_contexts_are_refused_with_the_path():
    space = Space([*(Integer.range(f"n{k}", 1, 50, default=1) for k in range(2)), Choice("way", ("a", "b"))], [])
    with pytest.raises(StudyFileError, match=r"2500 contexts, more than 2000.*decisions\.over"):
        sampler_of_study(space, study_file(decisions={"over": ["n0", "n1"]}))


def test_however_many_settings_were_tried_new_ones_and_the_best_known_compete(monkeypatch):
    """32 contexts at six points leave room for a dozen settings, but the best is the last of twenty tried ones."""
    space = Space([Integer.range("ranks", 1, 32, default=1), Integer.range("way", 0, 199, default=0)], [])
    rows = space.indices([{"ranks": 1 + way, "way": way} for way in range(20)])
    costs = [*(50.0 - way for way in range(19)), 0.5]
    seen = [Observation(1.0, points=tuple((float(size), one * size) for size in SIZES[:6])) for one in costs]
    competing, across = [], Grid.across

    def spied(*arguments):
        competing.append(across(*arguments))
        return competing[-1]

    monkeypatch.setattr(Grid, "across", spied)
    sampler = DecisionSampler(space, ("ranks",), seed=1, startup=0)
    sampler._starts = [0]
    proposed = sampler.rank(History(rows, seen, StudyDirection.MINIMIZE), np.random.default_rng(1))
    assert {19} < {one["way"] for one in space.decode(competing[0])}
    assert any(one["way"] >= 20 for one in space.decode(proposed))


def test_failing_trials_in_one_context_of_many_do_not_end_the_search():
    space = Space([Integer.range("ranks", 1, 400, default=1), Integer.range("way", 0, 19, default=0)], [])
    sampler = DecisionSampler(space, ("ranks",), seed=1, usage=Usage(({"ranks": 7, "count": 1},)))
    rows = space.indices([{"ranks": 1, "way": 0}])
    for _ in range(20):
        history = History(rows, [Observation()] * len(rows), StudyDirection.MINIMIZE)
        rows = np.concatenate([rows, space.indices([sampler.propose(history)])])
    assert {one["way"] for one in space.decode(rows[1:])} == set(range(20))
    with pytest.raises(SpaceExhaustedError):
        sampler.propose(History(rows, [Observation()] * len(rows), StudyDirection.MINIMIZE))
