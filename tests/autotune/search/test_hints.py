import pytest
from optuna.study import StudyDirection

from autotune.records.limit import Limit
from autotune.search.asker import Asker, worth_trying
from autotune.search.base import History
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.guidance.hints import PATIENCE, give_hint, hints_of
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from objectives.base import Metric
from tests.support.fakes import definition, small_space

SPACE = small_space()
DEFAULT = SPACE.default()
FEW, MORE, ALONE = {"np": 4, "npool": 2}, {"np": 6, "npool": 3}, {"np": 1}
HINTS = [FEW, MORE, ALONE]


def history(*trials, direction=StudyDirection.MINIMIZE):
    configurations, observations = zip(*trials, strict=True)
    told = [
        Observation(pending=True) if value is None else value if isinstance(value, Observation) else Observation(value)
        for value in observations
    ]
    return History(SPACE.indices(configurations), told, direction)


def tried(*trials, **more):
    return SPACE.decode(worth_trying(HINTS, SPACE, history(*trials, **more)))


def others(count):
    return [one for one in SPACE.configurations() if one != DEFAULT and one not in HINTS][:count]


def test_the_first_hint_is_tried_after_the_default_and_each_that_pays_pays_for_another():
    assert tried((DEFAULT, 10.0))[0] == FEW
    assert tried((DEFAULT, 10.0), (FEW, 5.0)) == [], "the search has its turn"
    own = [(one, 12.0) for one in others(2)]
    assert tried((DEFAULT, 10.0), (FEW, 5.0), *own)[0] == MORE
    assert tried((DEFAULT, 10.0), (FEW, 5.0), *own, (MORE, 7.0)) == [ALONE], "the first had paid for it"
    assert tried((DEFAULT, 10.0), (FEW, 5.0), *own, (MORE, 7.0), (ALONE, 7.0)) == []


def test_what_the_search_finds_by_itself_uses_the_trust_up():
    own = others(2)
    assert tried((DEFAULT, 10.0), (FEW, 5.0), (own[0], 12.0), (own[1], 12.0))[0] == MORE
    assert tried((DEFAULT, 10.0), (FEW, 5.0), (own[0], 2.0), (own[1], 12.0))[:1] == [MORE], "none has failed yet"
    assert tried((DEFAULT, 10.0), (FEW, 5.0), (own[0], 2.0), (MORE, 7.0), (own[1], 12.0)) == []


def test_many_small_steps_leave_the_search_every_second_trial():
    assert tried((DEFAULT, 10.0), (FEW, 9.0), (MORE, 8.0)) == []


@pytest.mark.parametrize("value", [11.0, None, Observation(), Observation(bound=10.0)], ids=repr)
def test_after_a_hint_that_did_not_pay_none_is_tried_until_it_weighs_little(value):
    trials = [(DEFAULT, 10.0), (FEW, value)]
    assert tried(*trials) == []
    trials += [(one, 12.0) for one in others(PATIENCE - 3)]
    assert tried(*trials) == []
    assert tried(*trials, (others(PATIENCE)[-1], 12.0))[0] == MORE


def test_small_steps_do_not_pay():
    spread = [(one, value) for one, value in zip(others(3), (4.0, 8.0, 6.0), strict=True)]
    assert tried((DEFAULT, 10.0), *spread, (FEW, 3.999)) == []
    assert tried((DEFAULT, 10.0), *spread, (FEW, 3.0))[0] == MORE


def test_what_is_to_be_large_pays_by_being_larger():
    own = [(one, 3.0) for one in others(2)]
    assert tried((DEFAULT, 10.0), *own, (FEW, 5.0), direction=StudyDirection.MAXIMIZE) == []
    assert tried((DEFAULT, 10.0), *own, (FEW, 15.0), direction=StudyDirection.MAXIMIZE)[0] == MORE


def test_a_hint_that_breaks_a_limit_has_not_paid():
    limits = (Limit(Metric("memory", "B"), high=100.0),)
    own = [(one, Observation(12.0, limited=(50.0,))) for one in others(2)]
    trials = history((DEFAULT, Observation(10.0, limited=(50.0,))), *own, (FEW, Observation(5.0, limited=(200.0,))))
    assert not len(worth_trying(HINTS, SPACE, trials, limits))
    assert len(worth_trying(HINTS, SPACE, trials))


def test_what_is_not_valid_is_never_tried():
    assert len(worth_trying([{"np": 5, "npool": 2}], SPACE, history((DEFAULT, 10.0)))) == 0


def test_a_study_tries_a_hint_that_another_process_stored(address):
    asker = Asker(StudyStore.create(address, "paper", definition(SPACE)), ValidSetSampler(SPACE))
    other = StudyStore.read(address, "paper", read_only=False)
    for configuration in (FEW, MORE):
        give_hint(other, configuration, "ada", "half the ranks")
    assert [(hint.configuration, hint.by, hint.why) for hint in hints_of(asker.store)] == [
        (FEW, "ada", "half the ranks"),
        (MORE, "ada", "half the ranks"),
    ]
    assert asker.ask().configuration == DEFAULT, "the default is measured first, whatever is hinted"
    seen = {0: Observation(10.0)}
    assert asker.ask(seen).configuration == FEW
    seen[1] = Observation(20.0)
    assert asker.ask(seen).configuration not in HINTS


@pytest.mark.slow
def test_a_hint_that_would_show_nothing_new_is_passed_over(address):
    asker = Asker(StudyStore.create(address, "paper", definition(SPACE)), ValidSetSampler(SPACE))
    for configuration in (FEW, MORE):
        give_hint(asker.store, configuration, "ada")
    asker.ask()
    assert asker.ask({0: Observation(10.0)}, lambda one: one == FEW).configuration == MORE
