"""Metrics of a whole job besides those of its program, and the message if they were not measured."""

import pytest

from launchers import EndReason, JobState, JobStatus, Usage
from launchers.meters.figures import OF_THE_NODE, UNITS, read_figures
from objectives.base import InvalidResult, Measurement, Metric, Output
from objectives.job_metrics import METERED, JobMetrics, job_metrics
from tests.support.fakes import SECONDS, PaperObjective

ENERGY, MEMORY = Metric("energy_j", "J"), Metric("peak_memory_bytes", "B")


def ended(tmp_path, **figures):
    used = Usage(elapsed_s=4.0, cpu_s=7.0, peak_memory_bytes=2**20)
    status = JobStatus(JobState.ENDED, EndReason.EXITED, 0, used, metered=figures)
    return Output("seconds 3\n", "", status, tmp_path)


@pytest.fixture
def measure(tmp_path, monkeypatch):
    monkeypatch.setattr(PaperObjective, "measure", lambda *_: Measurement({SECONDS.name: 3.0}))
    return lambda metrics, demanded=(), **figures: JobMetrics(PaperObjective(), metrics, demanded).measure(
        ended(tmp_path, **figures)
    )


def test_a_run_has_its_programs_metrics_and_those_of_its_job(measure):
    found = measure((ENERGY, SECONDS, MEMORY), energy_j=120.0, gpu_busy_share=0.2)
    assert found.metrics == {SECONDS.name: 3.0, "energy_j": 120.0, "peak_memory_bytes": float(2**20)}


@pytest.mark.parametrize(("metrics", "demanded"), [((ENERGY, SECONDS), ()), ((SECONDS,), ("energy_j",))])
def test_a_run_without_a_figure_that_is_asked_for_is_invalid_and_says_what_is_told(measure, metrics, demanded):
    with pytest.raises(InvalidResult, match=r"no energy_j: .*they measure cpu_energy_j.*autotune doctor"):
        measure(metrics, demanded, cpu_energy_j=3.0)
    with pytest.raises(InvalidResult, match="they measure nothing"):
        measure(metrics, demanded)


def test_every_figure_of_a_meter_is_a_metric_with_its_unit():
    assert {metric.name: metric.unit for metric in METERED} == UNITS
    assert {metric.name for metric in METERED if metric.direction == "maximize"} == {"gpu_busy_share"}
    assert UNITS.keys() > OF_THE_NODE


def test_what_is_stored_and_is_no_figure_is_not_read():
    stored = {"energy_j": 3, "cpu_energy_j": -1, "gpu_energy_j": "7", "memory_energy_j": float("nan"), "load_1m": 2.0}
    assert read_figures(stored) == {"energy_j": 3.0}
    assert read_figures(None) == read_figures([1]) == {}
    assert job_metrics(Usage(), {}) == {}
