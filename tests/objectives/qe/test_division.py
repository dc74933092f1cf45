"""From version 7.1 on pw.x chooses what it is not told: labels, runs and the cost model must mean the same division."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from launchers import EndReason, JobState, JobStatus, MpiStart, Usage
from objectives.base import Context, InvalidResult, Output
from objectives.qe.costs import costs
from objectives.qe.deck import Deck
from objectives.qe.division import Division, chooses_layout
from objectives.qe.objective import QeObjective
from objectives.qe.options import shipped_input
from objectives.shapes.columns import CaseColumns
from spaces import Space
from spaces.qe import QeFacts, constraints, parameters, rank_counts, rule_facts
from tests.objectives.qe.fake_pwx import FakePwx

WHOLE = (Path(__file__).parents[1] / "outputs" / "converged-np2.stdout").read_text()
REAL = WHOLE.split("     iteration #")[0] + WHOLE[WHOLE.index("!    total energy") :]
GADI = QeFacts(cores=1536, cores_per_node=48, kpoints=20, planes=96, chooses_layout=True, scalapack=True)
PWX = FakePwx(GADI.kpoints, 330, GADI.planes, REAL)
ENDED = JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(5.5, 10.0, 2**27), "")
OBJECTIVE = QeObjective("pw.x", Deck(shipped_input("tio2").decode()), 1e-6, GADI.cores_per_node, GADI.nodes)
SPACE = Space(parameters(GADI), constraints(GADI), rule_facts(GADI))
LEFT_TO_PWX = [{"np": ranks, "nbgrp": 1} for ranks in rank_counts(GADI)]
LABELS = {"npool": "pools", "nbgrp": "band_groups", "ntg": "task_groups"}


def run(configuration, folder, *, said=None):
    """Return the measurement of a configuration; the fake divides as `said` asks, if it is given."""
    job = OBJECTIVE.job(configuration, Context(folder))
    text = PWX.run(job if said is None else OBJECTIVE.job(said, Context(folder)))
    return OBJECTIVE.measure(Output(text, "", ENDED, folder, job))


def columns(configurations):
    names = ("np", "npool", "nbgrp", "ntg", "ndiag")
    found = {name: np.array([float(one.get(name, np.nan)) for one in configurations]) for name in names}
    count = len(configurations)
    facts = {"kpoints": GADI.kpoints, "bands": PWX.bands, "fft_dense_x": 96, "fft_dense_y": 96, "fft_dense_z": 96}
    found |= {name: np.full(count, float(value)) for name, value in facts.items()}
    return found | {"scalapack": np.ones(count), "pw_version": np.array(["7.2"] * count, dtype=object)}


@pytest.mark.slow
def test_labels_layouts_and_the_cost_model_agree_in_a_thousand_configurations(tmp_path):
    sample = [*SPACE.sample(np.random.default_rng(0), 1000), *LEFT_TO_PWX]
    found = columns(sample)
    known = CaseColumns(found)
    division = Division.of(known, known.number("bands"), known.number("fft_dense_z"))
    for row, configuration in enumerate(sample):
        layout = run(configuration, tmp_path).details["layout"]
        assert layout["ranks"] == configuration["np"]
        for name, label in LABELS.items():
            assert configuration.get(name, layout[label]) == layout[label], configuration
        in_group = configuration["np"] // layout["pools"] // layout["band_groups"]
        assert (division.pools[row], division.tasks[row]) == (layout["pools"], layout["task_groups"]), configuration
        assert division.ndiag[row] == layout["diagonalization_grid"] ** 2, (configuration, in_group)


def test_what_users_type_is_the_default_and_pw_x_chooses_the_pools(tmp_path):
    default = SPACE.default()
    assert default["np"] == 1536
    assert not {"npool", "ntg", "ndiag"} & set(default)
    layout = run(default, tmp_path).details["layout"]
    assert (layout["pools"], layout["diagonalization_grid"]) == (16, 3)


def test_before_it_chooses_the_default_has_the_fewest_pools_that_it_runs_with():
    older = replace(GADI, chooses_layout=False)
    default = Space(parameters(older), constraints(older), rule_facts(older)).default()
    assert (default["np"], default["npool"]) == (1536, 16)


@pytest.mark.parametrize(
    ("told", "did", "words"),
    [
        ({"npool": 1}, {}, "npool=12 instead of 1"),
        ({"npool": 12}, {"npool": 6}, "npool=6 instead of 12"),
        ({"npool": 12, "ndiag": 4}, {"npool": 12, "ndiag": 1}, "ndiag=1 instead of 4"),
        ({"npool": 12, "ntg": 2}, {"npool": 12, "ntg": 1}, "ntg=1 instead of 2"),
    ],
)
def test_a_run_that_was_divided_otherwise_is_no_measurement(tmp_path, told, did, words):
    base = {"np": 576, "nbgrp": 1, "threads": 1}
    with pytest.raises(InvalidResult, match=words):
        run({**base, **told}, tmp_path, said={**base, **did})


def test_ranks_that_did_not_find_each_other_are_no_measurement(tmp_path):
    job = OBJECTIVE.job({"np": 4, "npool": 1}, Context(tmp_path))
    alone = PWX.run(replace(job, mpi=MpiStart(1)))
    with pytest.raises(InvalidResult, match="np=1 instead of 4"):
        OBJECTIVE.measure(Output(alone, "", ENDED, tmp_path, job))


@pytest.mark.parametrize(
    ("version", "chooses"),
    [
        ("7.1", True),
        ("7.4.1", True),
        ("8.0", True),
        ("7.0", False),
        ("6.7MaX", False),
        ("unknown", False),
        (None, False),
    ],
)
def test_versions(version, chooses):
    assert chooses_layout(version) is chooses


def test_the_cost_of_what_pw_x_chooses_is_that_of_the_same_division_said():
    chosen, said = {"np": 1536, "nbgrp": 1}, {"np": 1536, "npool": 16, "nbgrp": 1, "ntg": 1, "ndiag": 9}
    cost = costs(columns([chosen, said]))
    assert cost.logarithms[0] == pytest.approx(cost.logarithms[1])
