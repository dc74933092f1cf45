"""Spack package; until a release it is built from a checkout: spack dev-build py-autotune-hpc@0.1.0."""

from spack.package import default_args, depends_on, license, variant, version  # noqa: A004  Spack's own
from spack_repo.builtin.build_systems.python import PythonPackage


class PyAutotuneHpc(PythonPackage):
    """Finds the fastest valid configuration of a program on a machine, and says how sure it is."""

    license("Apache-2.0", checked_by="autotune maintainers")

    # A release adds its file of PyPI here: pypi = "autotune_hpc/autotune_hpc-0.1.0.tar.gz", and its sha256.
    version("0.1.0")

    variant("pictures", default=True, description="Draw pictures (matplotlib)")
    variant("service", default=True, description="The page and the HTTP API (FastAPI)")
    variant("model", default=True, description="Predict run times (XGBoost), importance of parameters (scikit-learn)")
    variant("ray", default=True, description="Several nodes of an allocation (Ray)")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.27:", type="build")
    with default_args(type="run"):
        depends_on("py-archspec@0.2.5:")
        depends_on("py-cmaes@0.12:")
        depends_on("py-numpy@2.2:")
        depends_on("py-optuna@5")
        depends_on("py-pandas@3:")
        depends_on("py-psutil@7:")
        depends_on("py-pydantic@2.12:")
        depends_on("py-regex@2026.11:")
        depends_on("py-rich@14:")
        depends_on("py-scipy@1.15:")
        depends_on("py-threadpoolctl@3.6:")
        depends_on("py-typer@0.20:0.29")
        depends_on("py-matplotlib@3.10:", when="+pictures")
        depends_on("py-fastapi@0.120:", when="+service")
        depends_on("py-uvicorn@0.38:", when="+service")
        depends_on("py-scikit-learn@1.7:", when="+model")
        depends_on("py-xgboost@3.1:3", when="+model")
        depends_on("py-ray@2.60", when="+ray")
