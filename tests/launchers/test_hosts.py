"""The host on which a job starts: what each scheduler is asked, and how a job requests a host."""

from dataclasses import replace

import pytest

from launchers import Job, Place, Resources
from launchers.batch import BatchLauncher
from launchers.batch.commands import Answer
from launchers.batch_systems.pbs import able_hosts
from launchers.batch_systems.registry import BATCH_SYSTEMS
from launchers.site import Site
from tests.launchers.test_scripts import FOLDER, GADI

ON = {
    "slurm": "#SBATCH --nodelist=n1",
    "pbs": "#PBS -l select=1:ncpus=2:mpiprocs=1:host=n1",
    "grid-engine": "#$ -l hostname=n1",
    "lsf": '#BSUB -m "n1"',
    "flux": "#flux: --requires=host:n1",
}
NOT_ON = {
    "slurm": "#SBATCH --exclude=n1,n2",
    "grid-engine": "#$ -l hostname=!(n1|n2)",
    "lsf": "#BSUB -R \"select[hname!='n1' && hname!='n2']\"",
    "flux": "#flux: --requires=-host:n1,n2",
}
# Hosts as PBS prints them: a free one, a busy one, an offline one, one of another queue and a small one.
PBSNODES = """\
n1
     Mom = n1.cluster
     ntype = PBS
     state = job-busy
     pcpus = 16
     jobs = 1417589.server/0, 1417589.server/1
     resources_available.host = n1
     resources_available.ncpus = 8
     resources_assigned.ncpus = 8

n2
     state = free
     resources_available.host = n2
     resources_available.ncpus = 8

n3
     state = down,offline
     resources_available.host = n3
     resources_available.ncpus = 8

n4
     state = free
     queue = of_others
     resources_available.host = n4
     resources_available.ncpus = 8

n5
     state = free
     resources_available.host = n5
     resources_available.ncpus = 2
"""


def script(name: str, place: Place, **site: object) -> list[str]:
    launcher = BatchLauncher(BATCH_SYSTEMS[name].scheduler, Site(name, cores_per_node=4, **site))
    return launcher.script(Job(("true",), folder=FOLDER, resources=Resources(cores=2), place=place)).splitlines()


@pytest.mark.parametrize("name", BATCH_SYSTEMS)
def test_job_names_its_host(name):
    told = script(name, Place("n1"))
    assert ON[name] in told
    assert [line for line in told if line not in script(name, Place())] == [ON[name]]


@pytest.mark.parametrize("name", NOT_ON)
def test_job_names_hosts_to_avoid(name):
    told = script(name, Place(avoid=("n1", "n2")))
    assert [line for line in told if line not in script(name, Place())] == [NOT_ON[name]]


def test_job_of_several_nodes_has_no_place():
    job = Job(("true",), FOLDER, resources=Resources(cores=8), place=Place("n1"))
    site = Site("slurm", cores_per_node=4, nodes=2)
    assert "n1" not in BatchLauncher(BATCH_SYSTEMS["slurm"].scheduler, site).script(job)


@pytest.mark.parametrize("line", ["--exclude=bad[1-3]", "-x bad[1-3]", "-xbad[1-3]", "--exclude bad[1-3]"])
def test_hosts_excluded_by_the_site_stay_excluded(line):
    told = script("slurm", Place(avoid=("n1",)), directives=(line,))
    assert told.index(f"#SBATCH {line}") < told.index("#SBATCH --exclude=bad[1-3],n1")


def test_hosts_cannot_be_chosen_if_the_site_chooses_them():
    pbs, flux = BATCH_SYSTEMS["pbs"].scheduler, BATCH_SYSTEMS["flux"].scheduler
    assert not BatchLauncher(pbs, GADI).hosts.is_free
    assert not BatchLauncher(pbs, replace(GADI, by_chunks=True, chunk=("host=n1",))).hosts.is_free
    assert BatchLauncher(pbs, replace(GADI, by_chunks=True)).hosts.is_free
    assert not BatchLauncher(flux, Site("flux", directives=("--requires=gpu",))).hosts.is_free


def test_pbsnodes_lists_hosts_that_could_start_a_job():
    site = Site("pbs", cores_per_node=8)
    assert able_hosts(PBSNODES, site, 4) == ["n2", "n1"]
    assert able_hosts(PBSNODES, replace(site, queue="of_others"), 4) == ["n4"]
    assert able_hosts(PBSNODES, site, 2) == ["n2", "n5", "n1"]
    assert able_hosts("", site, 1) == []


@pytest.mark.parametrize(("known", "place"), [(["n2.cluster"], Place("n1")), (["n1", "n2"], None)])
def test_pbs_finds_a_host_that_is_not_known(known, place):
    def commands(argv, *_):
        return Answer(0, PBSNODES) if list(argv) == ["pbsnodes", "-a"] else Answer(1)

    launcher = BatchLauncher(BATCH_SYSTEMS["pbs"].scheduler, Site("pbs", cores_per_node=8), commands)
    assert launcher.hosts.find_other(4, known) == place


def test_unanswered_pbs_query_finds_no_host():
    launcher = BatchLauncher(BATCH_SYSTEMS["pbs"].scheduler, Site("pbs"), lambda *_: Answer(1, PBSNODES))
    assert launcher.hosts.find_other(1, []) is None
