"""Once a run lacked memory, nothing that needs as much is run while there is anything else."""

from dataclasses import replace
from types import SimpleNamespace

from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from autotune.tuning import opening
from launchers import Usage
from objectives.base import FailureKind, MemoryNeed
from tests.autotune.tuning.test_loop import session
from tests.support.fakes import ListDisplay, PaperExecutor, bowl, definition, failed, small_space, took
from tests.support.stored import add_trial


def need(configuration):
    return float(configuration["np"] * configuration.get("npool", 1))


def cramped(configuration):
    return failed(FailureKind.OUT_OF_MEMORY) if need(configuration) > 8 else bowl(configuration)


def test_what_needs_as_much_memory_as_a_run_that_lacked_it_is_not_run(tmp_path):
    executor, display = PaperExecutor(cramped), ListDisplay()
    _, manager, runner = session(tmp_path, executor, trials=25, display=display)
    manager.factory = replace(manager.factory, memory=MemoryNeed(need, 2**40))
    runner.tune()
    lacked = [need(configuration) for _, configuration in executor.launched if need(configuration) > 8]
    assert lacked
    assert lacked == sorted(set(lacked), reverse=True)
    assert any("which ran out of it" in line for line in display.lines)


def test_what_a_study_of_another_machine_learnt_of_memory_is_carried_over(tmp_path):
    url, here = f"sqlite:///{tmp_path}/a.db", definition(small_space())
    there = definition(small_space(), machine={"host": "there", "cores": 2}, machine_identity={"cpu": "another"})
    larger = definition(small_space(), facts={"kpoints": 400})
    for name, known, peak in (("mine", here, 1_000), ("there", there, 50), ("larger", larger, 10)):
        ran = replace(took(1.0), usage=Usage(1.0, 1.0, peak))
        store = StudyStore.create(url, name, known)
        add_trial(store, small_space(), {"np": 4}, ran, worth=Observation(value=1.0))
    opened = SimpleNamespace(
        store=SimpleNamespace(name="mine"),
        settings=SimpleNamespace(url=url),
        prepared=SimpleNamespace(definition=here, plan=SimpleNamespace(memory=MemoryNeed(need, 100))),
    )
    assert opening._memory(opened).excess_bytes == 46  # what the run there took, but for its four
    opened.prepared.plan.memory = None
    assert opening._memory(opened) is None
