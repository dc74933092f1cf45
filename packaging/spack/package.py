"""Spack package; until a release it is built from a checkout: spack dev-build py-autotune-hpc@0.1.0.

pip fetches the packages of the lock: Spack's repository has neither Optuna 5 nor Ray 2.60.
"""

from spack.package import depends_on, license, run_before, variant, version, working_dir  # noqa: A004  Spack's own
from spack_repo.builtin.build_systems.python import PythonPackage


class PyAutotuneHpc(PythonPackage):
    """Finds the fastest valid configuration of a program on a machine, and says how sure it is."""

    license("Apache-2.0", checked_by="autotune maintainers")

    # A release adds its file of PyPI here: pypi = "autotune_hpc/autotune_hpc-0.1.0.tar.gz", and its sha256.
    version("0.1.0")

    variant("light", default=False, description="Without pictures, service, predictions and Ray")

    depends_on("python@3.11:3.14", type=("build", "run"))
    depends_on("py-hatchling@1.27:", type="build")

    @run_before("install")
    def install_locked_packages(self) -> None:
        """Install the packages of the lock, which pip checks by their hashes."""
        lock = f"requirements/{'light' if self.spec.satisfies('+light') else 'run'}.lock"
        options = ("--prefix", self.prefix, "--ignore-installed", "--require-hashes", "-r", lock)
        with working_dir(self.stage.source_path):
            self.spec["python"].command("-m", "pip", "install", *options)
