"""Once a run lacked memory, nothing that needs as much is run while there is anything else."""

from dataclasses import replace

from objectives.base import FailureKind, MemoryNeed
from tests.autotune.tuning.test_loop import session
from tests.support.fakes import ListDisplay, PaperExecutor, bowl, failed


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
