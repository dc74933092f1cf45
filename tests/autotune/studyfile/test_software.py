"""Software as a knob of a study: a value for each table, with its own program, its own identity and its own job."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune.errors import CannotRunHereError, StudyFileError
from autotune.machines.this_machine import this_machine
from autotune.planning.check import check
from autotune.planning.prepare import prepare
from autotune.studyfile.loading import load
from launchers.local import LocalLauncher
from launchers.software.software import LoadedSoftware
from objectives.base import Context, Plan
from objectives.software import PlannedSoftware, join_software
from spaces import Constraint, Space
from spaces.parameters.parameter import Integer

STUDY = """
objective = "command"

[options]
argv = ["solver", "-n", "{n}"]

[software.stable]
spack = ["solver@1"]

[software.new]
spack = ["solver@2"]

[space.parameters.n]
type = "integer"
low = 1
high = 4
default = 1

[[space.constraints]]
name = "few"
rule = "software != 'stable' or n <= 2"
reason = "the old one can do no more"
"""

# It knows two packages, and refuses whatever else it is asked.
SPACK = """#!/bin/sh
case "$*" in
  "find --format {name}@{version}/{hash} solver@1") echo solver@1.4/aaaa ;;
  "find --format {name}@{version}/{hash} solver@2") echo solver@2.0/bbbb ;;
  "load --sh solver@1") echo "export PATH='$HOME/solver1:$PATH';" ;;
  "load --sh solver@2") echo "export PATH='$HOME/solver2:$PATH';"; echo "export SOLVER='2';" ;;
  *) echo "==> Error: Spec '$3' matches no installed packages." >&2; exit 1 ;;
esac
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Make this process's environment that of a user with two solvers of Spack's; return their folder."""
    programs = {"spack/spack": SPACK, "solver1/solver": "#!/bin/sh\n", "solver2/solver": "#!/bin/sh\n# 2\n"}
    for name, body in programs.items():
        program = tmp_path / name
        program.parent.mkdir()
        program.write_text(body)
        program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'spack'}:/usr/bin:/bin")
    return tmp_path


def written(folder, text=STUDY):
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def prepared(folder, text=STUDY):
    return prepare(load(written(folder, text)), this_machine(), LocalLauncher(), folder / "plan")


def with_nodes(nodes):
    return STUDY.replace('"{n}"]', f'"{{n}}"]\nnodes = "{nodes}"')


def test_runs_of_each_software_have_the_nodes_that_a_parameter_of_the_study_file_says(here, tmp_path):
    found = prepared(here, with_nodes("n"))
    assert list(found.space.configurations()) == [{"software": "stable", "n": 1}, {"software": "new", "n": 1}]
    assert found.plan.objective.job({"software": "new", "n": 1}, Context(tmp_path)).resources.nodes == 1


def test_nodes_that_cannot_be_read_are_a_problem_of_that_option(here):
    with pytest.raises(StudyFileError) as caught:
        prepared(here, with_nodes("n //"))
    (problem,) = caught.value.problems
    assert problem.path == "options.nodes"
    assert "cannot read this" in problem.message


def test_each_table_is_a_value_and_the_first_is_the_default(here):
    space = prepared(here).space
    assert space.default() == {"software": "stable", "n": 1}
    assert {(c["software"], c["n"]) for c in space.configurations()} == {
        *(("stable", n) for n in (1, 2)),
        *(("new", n) for n in (1, 2, 3, 4)),
    }


def test_a_job_runs_the_program_of_its_software(here, tmp_path):
    plan = prepared(here).plan
    for name, folder in (("stable", "solver1"), ("new", "solver2")):
        job = plan.objective.job({"software": name, "n": 2}, Context(tmp_path))
        environment = LocalLauncher().environment(job)
        assert shutil.which("solver", path=environment["PATH"]) == str(here / folder / "solver")
        assert environment.get("SOLVER") == ("2" if name == "new" else None)
    assert "solver1" not in os.environ["PATH"]


def test_measurements_are_of_the_packages_they_were_made_with(here):
    identity = prepared(here).plan.identity
    assert identity["software stable"] == "spack solver@1 solver@1.4/aaaa"
    assert identity["program (stable)"] != identity["program (new)"]
    (here / "spack" / "spack").write_text(SPACK.replace("2.0/bbbb", "2.0/cccc"))
    assert prepared(here).plan.identity != identity


def test_the_command_is_shown_with_what_loads_its_software(here):
    report = check(written(here), (), this_machine(), LocalLauncher())
    assert not report.mistakes
    assert 'loaded="$(spack load --sh solver@1)" && eval "$loaded" && env ' in report.command
    assert "software 'new': spack solver@2 solver@2.0/bbbb" in report.notes


def test_software_that_cannot_be_had_is_missing_here_with_its_place(here):
    text = STUDY.replace('"solver@2"', '"solver@3"')
    report = check(written(here, text), (), this_machine(), LocalLauncher())
    (problem,) = report.missing
    assert "software 'new': ==> Error: Spec 'solver@3'" in problem.message or "matches no installed" in problem.message
    assert (problem.path, problem.line) == ("software.new", 10)
    with pytest.raises(CannotRunHereError, match="software 'new'"):
        prepared(here, text)


def test_a_program_that_a_software_does_not_bring_is_named_with_it(here):
    shutil.rmtree(here / "solver2")
    report = check(written(here), (), this_machine(), LocalLauncher())
    assert [problem.message for problem in report.missing] == [
        "with software 'new': program 'solver' was not found; give its full path, or `module load` it"
    ]


def test_a_file_may_be_made_by_a_program_that_only_a_software_brings(here, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    for folder in ("solver1", "solver2"):
        (here / folder / "solver").write_text("#!/bin/sh\necho 1 > made\n")
    text = STUDY.replace(
        "[software.stable]", '[[options.files]]\nname = "made"\nmade_by = [["solver"]]\n\n[software.stable]'
    )
    report = check(written(here, text), (), this_machine(), LocalLauncher())
    assert (report.mistakes, report.missing) == ([], [])


def test_a_parameter_of_that_name_is_refused(here):
    text = STUDY.replace("[space.parameters.n]", "[space.parameters.software]").replace("{n}", "{software}")
    with pytest.raises(CannotRunHereError, match=r"\[software\] makes a parameter 'software' of its tables"):
        prepared(here, text)


def test_the_program_of_an_image_is_not_looked_for_here(here, monkeypatch):
    shutil.copy("/bin/true", here / "spack" / "apptainer")
    (here / "solver.sif").write_bytes(b"image")
    tables = '[software.image]\ncontainer = "solver.sif"\n'
    text = STUDY[: STUDY.index("[software.stable]")] + tables + STUDY[STUDY.index("[space.parameters.n]") :]
    text = text[: text.index("[[space.constraints]]")]
    monkeypatch.chdir("/")  # the image is the study file's neighbour, wherever one is
    plan = prepared(here, text.replace('"solver",', '"solver-of-the-image",')).plan
    job = plan.objective.job({"software": "image", "n": 3}, Context(here))
    assert Path(job.argv[0]).name == "apptainer"
    assert job.argv[-4:] == (str(here / "solver.sif"), "solver-of-the-image", "-n", "3")
    assert plan.identity["software image"].startswith("image solver.sif sha256:")
    assert replace(job, software=None) != job


def test_an_objective_that_looks_at_its_program_cannot_have_it_in_an_image(here):
    text = 'objective = "qe"\n[options]\ninput = "ceo2"\n[software.image]\ncontainer = "qe.sif"\n'
    with pytest.raises(CannotRunHereError, match="use modules or Spack, or objective = 'command'"):
        prepared(here, text)


def test_a_fact_of_one_program_is_named_after_its_software_and_its_rules_bind_nobody_else():
    size = Integer("size", (1, 2, 3), default=1)
    small = Plan(None, (size,), (Constraint("few", "size <= limit", "no more"),), {"limit": 1}, {})
    large = Plan(None, (size,), (Constraint("few", "size <= limit", "no more"),), {"limit": 3}, {})
    objectives = [replace(plan, objective=SimpleNamespace(metrics=())) for plan in (small, large)]
    planned = [PlannedSoftware(name, LoadedSoftware(), plan) for name, plan in zip("ab", objectives, strict=True)]
    plan = join_software(planned)
    space = Space(plan.parameters, plan.constraints, plan.facts)
    valid = {(c["software"], c["size"]) for c in space.configurations()}
    assert valid == {("a", 1), ("b", 1), ("b", 2), ("b", 3)}
    assert dict(plan.facts) == {"limit_a": 1, "limit_b": 3}
    assert {c.reason for c in plan.constraints} == {"software a: no more", "software b: no more"}


def test_a_rule_that_no_difference_of_the_programs_touches_is_one_rule():
    size = Integer("size", (1, 2, 3), default=1)
    rules = (Constraint("few", "size <= limit", "no more"), Constraint("odd", "size % 2 == 1", "pairs fail"))
    plans = [Plan(SimpleNamespace(metrics=()), (size,), rules, {"limit": limit}, {}) for limit in (1, 3)]
    planned = [PlannedSoftware(name, LoadedSoftware(), plan) for name, plan in zip("ab", plans, strict=True)]
    plan = join_software(planned)
    assert sorted(rule.name for rule in plan.constraints) == ["few (a)", "few (b)", "odd"]


def test_builds_are_folders_beside_the_study_file_each_with_its_own_identity(here, tmp_path, monkeypatch):
    text = STUDY.replace('spack = ["solver@1"]', 'programs = ["solver1"]').replace(
        'spack = ["solver@2"]', 'programs = ["solver2"]\nenvironment = { SOLVER = "2" }'
    )
    path = written(here, text)
    monkeypatch.chdir("/")
    plan = prepare(load(path), this_machine(), LocalLauncher(), tmp_path / "plan").plan
    assert plan.identity["program (stable)"] != plan.identity["program (new)"]
    environment = LocalLauncher().environment(plan.objective.job({"software": "new", "n": 2}, Context(tmp_path)))
    assert shutil.which("solver", path=environment["PATH"]) == str(here / "solver2" / "solver")
    assert environment["SOLVER"] == "2"


def test_a_variable_of_a_build_has_the_name_of_one(here):
    with pytest.raises(StudyFileError, match=r"software\.new\.environment"):
        load(written(here, STUDY.replace('spack = ["solver@2"]', 'environment = { "A;touch x;B" = "1" }')))


def test_a_table_with_the_name_of_a_key_is_a_software_whose_unknown_keys_are_said(here):
    text = STUDY.replace("[software.new]\nspack", '[software.container]\nimage = "x.sif"\nspack')
    with pytest.raises(StudyFileError) as caught:
        load(written(here, text))
    (problem,) = caught.value.problems
    assert problem.path == "software.container.image"
    assert "unknown key 'image' in [software.container]: known: modules, " in problem.message
