"""The size of a problem as a user states it in a small TOML file, instead of an input or besides one."""

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from objectives.base import PlanError
from objectives.qe.output import Workload
from objectives.toml_text import parse_toml, read_toml_text
from objectives.validation import problems_in
from spaces.parameters.problem import Problem

_NEEDED = ("kpoints", "bands", "fft_dense_x", "fft_dense_y", "fft_dense_z")


class KnownSizes(BaseModel):
    """Sizes of a problem by the names of a study's facts; what is missing is unknown.

    Args:
        kpoints: k-points after symmetry.
        bands: Kohn-Sham states.
        electrons: Valence electrons.
        atoms: Atoms of the cell.
        cutoff_ry: `ecutwfc`, in Ry.
        density_cutoff_ry: `ecutrho`, in Ry.
        fft_dense_x: Points of the FFT grid of the density; likewise y and z.
        fft_smooth_x: Points of the FFT grid of the wave functions, if it differs; likewise y and z.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kpoints: int | None = Field(default=None, ge=1)
    bands: int | None = Field(default=None, ge=1)
    electrons: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    atoms: int | None = Field(default=None, ge=1)
    cutoff_ry: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    density_cutoff_ry: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    fft_dense_x: int | None = Field(default=None, ge=1)
    fft_dense_y: int | None = Field(default=None, ge=1)
    fft_dense_z: int | None = Field(default=None, ge=1)
    fft_smooth_x: int | None = Field(default=None, ge=1)
    fft_smooth_y: int | None = Field(default=None, ge=1)
    fft_smooth_z: int | None = Field(default=None, ge=1)

    @classmethod
    def read(cls, path: Path) -> "KnownSizes":
        """Read a file.

        Raises:
            PlanError: The file is not readable, not TOML, or has errors; all are reported, each with its path.
        """
        table: object = {}
        try:
            table = parse_toml(read_toml_text(path))
            return cls.model_validate(table)
        except OSError as error:
            msg = f"the facts {path} cannot be read: {error.strerror}"
            raise PlanError(Problem(msg, "options.facts")) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            msg = f"{path} is not a TOML file: {error}"
            raise PlanError(Problem(msg, "options.facts")) from error
        except ValidationError as error:
            found = problems_in(error, cls, table)
            raise PlanError(Problem(f"{path}: {one.message}", one.path) for one in found) from None

    @property
    def dense_grid(self) -> tuple[int, int, int] | None:
        """The grid of the density, if all sides are known."""
        return _grid(self.fft_dense_x, self.fft_dense_y, self.fft_dense_z)

    @property
    def smooth_grid(self) -> tuple[int, int, int] | None:
        """The grid of the wave functions, if all sides are known."""
        return _grid(self.fft_smooth_x, self.fft_smooth_y, self.fft_smooth_z)

    def workload(self) -> Workload:
        """Return the size of a problem from these facts alone.

        Raises:
            PlanError: A size that limits the space is missing.
        """
        missing = [name for name in _NEEDED if getattr(self, name) is None]
        if missing:
            msg = f"the facts do not say {', '.join(missing)}; add them, or give the input, too (--input FILE)"
            raise PlanError(msg)
        return Workload(
            kpoints=self.kpoints,
            bands=self.bands,
            electrons=self.electrons,
            atoms=self.atoms,
            dense_grid=self.dense_grid,
            smooth_grid=self.smooth_grid or self.dense_grid,
            cutoff_ry=self.cutoff_ry,
            density_cutoff_ry=self.density_cutoff_ry,
        )


def _grid(x: int | None, y: int | None, z: int | None) -> tuple[int, int, int] | None:
    return (x, y, z) if x and y and z else None
