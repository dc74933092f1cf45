import pytest

from launchers.environment import inherited_variables, job_environment


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PATH",
            "LD_LIBRARY_PATH",
            "HOME",
            "LC_ALL",
            "TMPDIR",
            "MODULEPATH",
            "LOADEDMODULES",
            "LMOD_CMD",
            "CONDA_PREFIX",
        ),
        *("OMPI_MCA_pml", "OPAL_PREFIX", "UCX_TLS", "I_MPI_ROOT", "FI_PROVIDER", "SLURM_JOB_ID", "PBS_NODEFILE"),
        *("CONDA_PREFIX", "CUDA_VISIBLE_DEVICES", "OMPI_MCA_btl_vader_single_copy_mechanism"),
        "OMPI_MCA_plm_slurm_args",
    ],
)
def test_variables_that_cluster_programs_need_are_inherited(name):
    assert inherited_variables({name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    "name",
    [
        *("OMP_NUM_THREADS", "OMP_PROC_BIND", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LD_PRELOAD", "RAY_ADDRESS"),
        *("AWS_SECRET_ACCESS_KEY", "SLURM_JWT", "APPTAINER_DOCKER_PASSWORD", "CONDA_TOKEN", "FLUX_API_KEY"),
        *(
            "OMPI_COMM_WORLD_RANK",
            "OMPI_MCA_orte_hnp_uri",
            "OMPI_MCA_plm",
            "PMIX_RANK",
            "PMI_FD",
            "SLURM_CPU_BIND",
            "SLURM_PROCID",
        ),
        *("AUTOTUNE_SESSION", "AUTOTUNE_JOB_ID", "PWD", "_", "PS1"),
    ],
)
def test_other_variables_are_not_inherited(name):
    assert inherited_variables({name: "value"}) == {}


def test_rank_has_one_thread_by_default():
    assert job_environment({"OMP_NUM_THREADS": "8"}, {}) == {"OMP_NUM_THREADS": "1"}
    assert job_environment({}, {"OMP_NUM_THREADS": "4"}) == {"OMP_NUM_THREADS": "4"}
