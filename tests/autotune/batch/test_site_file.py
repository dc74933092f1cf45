"""Site files: their settings, and all mistakes in them reported at once."""

from pathlib import Path

import pytest

from autotune.batch.site_file import PROJECT, SiteError, find_cluster, program_names, site_files, with_account
from autotune.errors import CannotRunHereError
from launchers.mpi.open_mpi import OPEN_MPI


@pytest.fixture(autouse=True)
def _own_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def user_site(text: str, folder: Path) -> Path:
    path = folder / "config" / "autotune" / "site.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", sorted(site_files()))
def test_shipped_sites_can_be_used(name):
    cluster = find_cluster(name)
    assert cluster.machine.cores == cluster.site.nodes * cluster.site.cores_per_node
    assert cluster.facts["cores"] == cluster.machine.facts["cores"]


def test_gadi_is_the_machine_of_the_competitions_scripts():
    site, machine, _ = find_cluster("gadi", "pbs")
    assert (site.account, site.licences, site.directives) == ("", (), ("-l wd",))
    assert with_account(site).account == PROJECT
    assert with_account(site, "ab12").account == "ab12"
    assert (site.nodes * site.cores_per_node, machine.name) == (1536, "gadi")
    assert (site.mpi.kind, site.mpi.version, site.mpi.path) == (OPEN_MPI, (4, 1, 2), "mpirun")
    assert not site.by_chunks


def test_what_belongs_to_a_program_is_only_in_its_jobs(tmp_path):
    qe = find_cluster("gadi", programs=program_names({"objective": "qe"})).site
    assert (qe.licences, qe.modules, qe.knows_program) == (("qe",), ("openmpi/4.1.2", "qe/7.0"), True)
    lammps = program_names({"objective": "command", "options": {"argv": ["/opt/bin/lmp", "-in", "in.melt"]}})
    other = find_cluster("gadi", programs=lammps).site
    assert (other.licences, other.modules, other.knows_program) == ((), ("openmpi/4.1.2",), False)
    user_site('base = "gadi"\n[programs.lmp]\nmodules = ["lammps/3Aug2022"]\n', tmp_path)
    assert find_cluster(None, programs=lammps).site.modules == ("openmpi/4.1.2", "lammps/3Aug2022")
    assert find_cluster(None, programs=["qe"]).site.licences == ("qe",)


def test_a_users_file_changes_what_it_says_of_its_base(tmp_path):
    user_site('base = "gadi"\naccount = "ab12"\nwalltime = "1h30m"\nmodules = []\n', tmp_path)
    site, _, _ = find_cluster(None)
    assert (site.name, site.account, site.queue, site.walltime_s, site.modules) == ("gadi", "ab12", "normal", 5400, ())


def test_a_file_of_ones_own_is_given_by_its_path(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('base = "gadi"\nmpi = "Slurm srun"\npython = "~/env/bin/python"\n', encoding="utf-8")
    site, _, _ = find_cluster(str(file))
    assert (site.name, site.mpi.path) == ("mine", "srun")
    assert site.python.endswith("/env/bin/python")
    assert not site.python.startswith("~")


def test_all_mistakes_are_said_at_once_each_with_its_place(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'base = "gadi"\nacount = "x"\nwalltime = "long"\nmpi = "OpenMPI"\nqueue = "a b"\nnodes = 0\n'
        'setup = ["one\\ntwo"]\n',
        encoding="utf-8",
    )
    with pytest.raises(SiteError) as caught:
        find_cluster(str(file))
    said = str(caught.value)
    assert "6 errors" in said
    for place in (
        "unknown key 'acount': did you mean 'account'?",
        "@ walltime",
        "@ mpi",
        "@ queue",
        "@ nodes",
        "@ setup.0",
    ):
        assert place in said


def test_what_only_pbs_knows_is_refused_elsewhere(tmp_path):
    file = tmp_path / "mine.toml"
    words = 'account_name = "grant"\ngroup = "climate"\nchunk = ["model=sky"]\nsubmissions_per_minute = 30\n'
    file.write_text(f'base = "gadi"\nby_chunks = true\n{words}', encoding="utf-8")
    site = find_cluster(str(file)).site
    assert (site.account_name, site.group, site.chunk) == ("grant", "climate", ("model=sky",))
    assert site.submissions_per_minute == 30
    file.write_text(f'base = "slurm"\n{words}', encoding="utf-8")
    with pytest.raises(SiteError, match="only PBS has this") as caught:
        find_cluster(str(file))
    assert "3 errors" in str(caught.value)


def test_only_slurm_is_asked_what_jobs_took(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('base = "slurm"\nenergy = true\n', encoding="utf-8")
    assert find_cluster(str(file)).site.energy
    file.write_text('base = "gadi"\nenergy = true\n', encoding="utf-8")
    with pytest.raises(SiteError, match=r"energy is read only from the accounting of Slurm, .* @ energy"):
        find_cluster(str(file))


def test_a_base_lies_beside_its_file(tmp_path, monkeypatch):
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites" / "common.toml").write_text('base = "gadi"\naccount = "ab12"\n', encoding="utf-8")
    file = tmp_path / "sites" / "mine.toml"
    file.write_text('base = "./common.toml"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert find_cluster(str(file)).site.account == "ab12"
    assert find_cluster("sites/mine.toml").site.account == "ab12"


@pytest.mark.parametrize(("file", "name"), [("my site.toml", "my-site"), ("ü.toml", "site"), (".a.toml", "a")])
def test_any_file_has_a_name(tmp_path, file, name):
    (tmp_path / file).write_text('base = "gadi"\n', encoding="utf-8")
    assert find_cluster(str(tmp_path / file)).site.name == name


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("memory_per_node_gib = inf", "finite number"),
        ("memory_per_node_gib = 1e30", "must be at most"),
        ("poll_s = inf", "finite number"),
        ("poll_s = 1e30", "must be at most"),
        ('walltime = "99999999999d"', "at most a year"),
        ('modules = "qe"', r'must be a list: \["qe"\]'),
        ('directives = ["-l wd", "-N mine"]', "-N: the job sets its name"),
        ('qos = "high"', "PBS has no such resource; use queue"),
        ('chunk = ["model=sky"]', "by_chunks = false requests totals"),
        ('chunk = ["ncpus=4"]', "each run sets its own size"),
    ],
)
def test_values_that_no_job_can_have(tmp_path, line, says):
    file = tmp_path / "mine.toml"
    file.write_text(f'base = "gadi"\n{line}\n', encoding="utf-8")
    with pytest.raises(SiteError, match=says) as caught:
        find_cluster(str(file))
    assert f"@ {line.partition(' ')[0]}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('base = "no-such"', "no site is called 'no-such'"),
        ('base = "./mine.toml"', "its own base"),
        ("base = ", "not a TOML file"),
        ('base = "gadi"\nmachine = "gadii"', "did you mean 'gadi'"),
        ('base = "gadi"\nnodes = 4000', "3074 nodes"),
        ('base = "gadi"\nmachine = "nvidia-a100"', "@ machine"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path, monkeypatch, text, says):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SiteError, match=says):
        find_cluster("./mine.toml")


def test_without_a_site_the_user_is_told_how_to_make_one():
    with pytest.raises(CannotRunHereError, match=r"site.toml.*shipped as examples: gadi, slurm"):
        find_cluster(None)


def test_another_scheduler_than_the_sites_is_refused():
    with pytest.raises(SiteError, match="has pbs, but slurm is requested"):
        find_cluster("gadi", "slurm")
