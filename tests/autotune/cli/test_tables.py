"""Tables fit a narrow terminal without a cut word; CSV has the digits of the figures."""

from io import StringIO

import pytest
from rich.console import Console

from autotune.cli.commands.check import _constraints, _parameters
from autotune.cli.tables import Column, fit_table
from autotune.display.console import Bar
from autotune.records.study import Run, TrialRecord
from autotune.results.export import as_csv
from autotune.results.trial_columns import row_of, trial_columns
from autotune.statistics.standings import Standings
from spaces import Choice, Constraint, Space
from tests.support.fakes import SECONDS, definition, small_space, took

COLUMNS = (Column("trial"), Column("host", 1), Column("started", 2), Column("configuration"))
ROWS = [("0", "gadi-cpu-clx-0001", "2026-11-22T20:52:33", "ranks=4 pools=2 blas=fast"), ("1", "vm", "2026", "a=[1]")]


def drawn(renderable, width, **options):
    console = Console(file=StringIO(), width=width, soft_wrap=True, highlight=False, markup=False, **options)
    console.print(renderable(console) if callable(renderable) else renderable)
    return console.file.getvalue()


def test_words_in_brackets_are_shown_as_they_are():
    flag = Choice("flag", ("-DA=[x]", "-DA=[y]"), default="-DA=[x]", help="where it is [/scratch]")
    rule = Constraint("one [of them]", "flag in ['-DA=[x]', '-DA=[y]']", "see [docs]")
    built = Space([flag], [rule])
    text = drawn(_parameters(built), 200) + drawn(_constraints(built), 200)
    words = ("-DA=[x], -DA=[y]", "[/scratch]", "one [of them]", "flag in ['-DA=[x]', '-DA=[y]']", "see [docs]")
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(("width", "titles"), [(200, ("host", "started")), (70, ("started",)), (40, ())])
def test_a_narrow_terminal_loses_the_least_important_columns_and_no_letter(width, titles):
    text = drawn(lambda console: fit_table(COLUMNS, ROWS, console), width)
    table, _, left_out = text.partition("left out")
    assert all((title in table) == (title in titles) for title in ("host", "started"))
    assert all((title in left_out) == (title not in titles) for title in ("host", "started"))
    assert max(map(len, table.splitlines())) <= width
    assert "…" not in text
    assert all(word in table for word in ["ranks=4", "pools=2", "blas=fast", "a=[1]"])


@pytest.mark.parametrize("width", [200, 70, 20])
def test_one_line_below_the_table_explains_the_columns_that_are_shown(width):
    columns = (Column("trial"), Column("host", 1, "its node"), Column("started", 2, "in UTC"), Column("configuration"))
    text = drawn(lambda console: fit_table(columns, ROWS, console), width)
    assert ("host: its node; started: in UTC" in text) == (width != 70)
    assert "started: in UTC" in text


def test_where_no_column_can_be_left_out_each_row_is_a_paragraph_with_all_of_it():
    columns = (Column("program"), Column("machine"), Column("runs", 1), Column("configuration"))
    rows = [("qe", "AMD EPYC 7763 64-Core Processor", "24", "np=2 npool=2"), ("lammps", "vm", "3", "np=1")]
    text = drawn(lambda console: fit_table(columns, rows, console), 50)
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[:4] == [
        "qe",
        "  machine:       AMD EPYC 7763 64-Core Processor",
        "  runs:          24",
        "  configuration: np=2 npool=2",
    ]
    assert lines[4] == "lammps"
    assert "left out" not in text
    assert max(map(len, lines)) <= 50
    in_a_pipe = drawn(lambda console: fit_table(columns, rows, console), 1000)
    assert "AMD EPYC 7763 64-Core Processor │ 24" in in_a_pipe


def test_figures_in_csv_are_those_that_were_measured():
    values = [{"wall_s": 2.76}, {"wall_s": 2.7599999999999993}]
    trials = []
    for number, configuration in enumerate(({"np": 4, "npool": 2}, {"np": 1, "blas": "fast"})):
        outcomes = [took(value["wall_s"]) for value in values]
        runs = tuple(Run(configuration, number, outcome=outcome) for outcome in outcomes)
        trials.append(TrialRecord(number, configuration, runs, settled=True))
    standings = Standings.of(trials, SECONDS)
    columns = trial_columns(standings, definition(small_space()))
    header, *rows = as_csv([row_of(trial, columns) for trial in trials]).splitlines()
    names = header.split(",")
    assert names[-1] == "message"
    first, second = (dict(zip(names, row.split(","), strict=True)) for row in rows)
    assert (first["np"], first["npool"], second["np"], second["npool"]) == ("4", "2", "1", "")
    assert first["value"] == first["wall_s"] == "2.76"


def test_a_bar_shows_what_is_left_without_colours():
    plain = {"no_color": True, "force_terminal": True}
    assert drawn(Bar(0, 4, width=8), 20, **plain).strip() == "────────"
    assert drawn(Bar(2, 4, width=8), 20, **plain).strip() == "━━━━────"
