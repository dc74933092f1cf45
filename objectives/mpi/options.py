"""The options of a study of collective operations."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from objectives.options import read_options

Blocking = Literal["allreduce", "reduce", "bcast", "allgather", "alltoall", "reduce_scatter", "barrier"]
Nonblocking = Literal["iallreduce", "ibcast", "iallgather", "ialltoall"]
Collective = Blocking | Nonblocking
Knobs = Literal["algorithms", "components", "transport", "placement", "progress", "backends"]

COLLECTIVES: tuple[Blocking, ...] = get_args(Blocking)
NONBLOCKING: tuple[Nonblocking, ...] = get_args(Nonblocking)

NUMBER_BYTES = 4
"""The size of the numbers that are exchanged; a message holds a whole number of them."""

_LARGEST = 2**26  # bytes; a rank allocates twice this times the number of ranks


class MpiOptions(BaseModel):
    """The `[options]` of a study of collective operations.

    Args:
        collectives: The values of the parameter `collective`, all blocking or all nonblocking.
        ranks: The values of the parameter `ranks`.
        message_bytes: The message sizes of a run, as the OSU micro-benchmarks count them.
        seconds: How long a run measures, all sizes together.
        knobs: The kinds of parameters: `algorithms` of the collectives, `components` that may replace their own,
            `transport` of messages within a node, `placement` of ranks on cores, `progress` of nonblocking operations;
            or `backends`, other libraries instead of MPI.
        compiler: The MPI library's compiler, by name or path.
        python: The interpreter with PyTorch, for `backends`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    collectives: list[Collective] = Field(default=list(COLLECTIVES), min_length=1)
    ranks: list[Annotated[int, Field(ge=2, le=4096)]] = Field(default=[2], min_length=1)
    message_bytes: list[Annotated[int, Field(ge=NUMBER_BYTES, le=_LARGEST, multiple_of=NUMBER_BYTES)]] = Field(
        default=[8, 64, 512, 4096, 32_768, 262_144, 1_048_576], min_length=1, max_length=64
    )
    seconds: float = Field(default=2.0, gt=0, le=600, allow_inf_nan=False)
    knobs: list[Knobs] = Field(default=["algorithms"], min_length=1)
    compiler: str = "mpicc"
    python: str | None = None

    @field_validator("collectives")
    @classmethod
    def _of_one_kind(cls, collectives: list[Collective]) -> list[Collective]:
        if 0 < sum(name in NONBLOCKING for name in collectives) < len(collectives):
            msg = f"nonblocking collectives ({', '.join(NONBLOCKING)}) have other metrics than blocking: name one kind"
            raise ValueError(msg)
        return collectives

    @field_validator("knobs")
    @classmethod
    def _of_these(cls, knobs: list[Knobs], given: ValidationInfo) -> list[Knobs]:
        if "progress" in knobs and not set(given.data.get("collectives", NONBLOCKING)) & set(NONBLOCKING):
            msg = f"'progress' is for nonblocking collectives only ({', '.join(NONBLOCKING)}); leave it out"
            raise ValueError(msg)
        if "backends" in knobs and (len(knobs) > 1 or set(given.data.get("collectives", ())) & set(NONBLOCKING)):
            msg = (
                "'backends' is for blocking collectives, without other knobs: backends do not read what is tuned of MPI"
            )
            raise ValueError(msg)
        return knobs

    @property
    def overlap(self) -> bool:
        """Whether the collectives are nonblocking and overlap with computation."""
        return self.collectives[0] in NONBLOCKING

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> "MpiOptions":
        """Check options from a study file.

        Raises:
            PlanError: The options have errors; all are reported, each with its path.
        """
        return read_options(cls, options, "the benchmark of collective operations")
