"""What a table of every algorithm says, and that no run of it is left out."""

from math import exp

from benchmarks.collectives import COLUMNS, fresh_gains, summary, wanted
from objectives.mpi.knobs import COLLECTIVE, RANKS
from objectives.mpi.openmpi import knobs, variables
from objectives.mpi.options import COLLECTIVES
from spaces import Choice, Integer
from tests.docs.page import ROOT

OMPI_INFO = (ROOT / "tests" / "objectives" / "outputs" / "ompi-info-4.1.4.txt").read_text()


def test_every_algorithm_runs_and_the_default_between_them():
    own = knobs(variables(OMPI_INFO), COLLECTIVES, ["algorithms"]).parameters
    parameters = (Choice(COLLECTIVE, COLLECTIVES), Integer(RANKS, (2, 4)), *own)
    runs = [(configuration[RANKS], configuration[COLLECTIVE], name) for name, configuration in wanted(parameters, 1)]
    assert [name for ranks, collective, name in runs if (ranks, collective) == (2, "alltoall")] == [
        *("default", "linear", "pairwise", "modified_bruck", "linear_sync", "two_proc")
    ]
    assert (4, "alltoall", "two_proc") not in runs
    assert runs.count((2, "bcast", "default")) == 2


def test_the_oracle_takes_the_fastest_of_each_size(tmp_path):
    table = tmp_path / "table.csv"
    rows = ["bcast,2,default,8,4e-6", "bcast,2,chain,8,1e-6", "bcast,2,default,64,2e-6", "bcast,2,chain,64,3e-6"]
    table.write_text("\n".join([",".join(COLUMNS), *rows]))
    (line,) = summary(table)
    assert line == "bcast, 2 ranks: 2.000x (8: chain; 64: default)"


def test_what_chance_made_fast_gains_nothing_in_the_repeat_that_did_not_choose():
    lucky = {"default": [2.0, 2.0, 2.0], "chain": [1.0, 2.0, 4.0]}
    assert [round(exp(gain), 3) for gain in fresh_gains(lucky)] == [1.0, 1.0, 0.5]
    better = {"default": [2.0, 2.0, 2.0, 2.0], "chain": [1.0, 1.0]}
    assert [round(exp(gain), 3) for gain in fresh_gains(better)] == [2.0, 2.0]
    assert fresh_gains({"default": [2.0], "chain": [1.0]}) == []
