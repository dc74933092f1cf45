import optuna

from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space
from tests.support.stored import add_trial

SPACE = small_space()


def asker(address):
    return Asker(StudyStore.create(address, "paper", definition(SPACE)), ValidSetSampler(SPACE))


def test_the_default_is_first_and_no_proposal_comes_twice(address):
    first, second = asker(address), asker(address)
    assert first.ask().configuration == SPACE.default()
    proposed = [first.ask(), second.ask(), second.ask()]
    assert [trial.number for trial in proposed] == [1, 2, 3]
    stored = StudyStore.read(address, "paper").trials()
    assert [dict(trial.configuration) for trial in stored[1:]] == [dict(trial.configuration) for trial in proposed]
    assert len({tuple(sorted(trial.configuration.items())) for trial in stored}) == 4


def test_when_every_configuration_was_proposed_there_is_none():
    store = StudyStore.in_memory(definition(SPACE))
    for configuration in SPACE.configurations():
        add_trial(store, SPACE, configuration)
    assert Asker(store, ValidSetSampler(SPACE)).ask() is None


def test_what_is_known_without_reading_is_what_would_be_read(address):
    asker(address)
    optuna.load_study(study_name="paper", storage=address).ask()  # no process can run it
    found = asker(address)
    found.store.recover(SPACE)
    seen = {}
    for value in (3.0, 2.0, 5.0):
        trial = found.ask(seen)
        seen[trial.number] = Observation(value=value)
        found.store.settle_all({trial.number: seen[trial.number]})
    with found.store.as_optuna() as study:
        known, read = found._index.history(seen), found.sampler.history(study)
    assert known.rows.tolist() == read.rows.tolist()
    assert list(known.observations) == list(read.observations)
    assert (known.trials, known.direction) == (read.trials, read.direction) == (3, known.direction)
    assert [trial.number for trial in found.store.trials()] == [1, 2, 3]
