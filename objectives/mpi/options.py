"""What a study file may say about collective operations."""

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
REDUCTIONS = frozenset({"allreduce", "reduce", "reduce_scatter"})

NUMBER_BYTES = 4
"""What is exchanged are numbers of this size: a message holds a whole number of them."""

_LARGEST = 2**26  # times the ranks, twice, is what a rank allocates


class MpiOptions(BaseModel):
    """The `[options]` of a study of collective operations.

    Args:
        collectives: Which ones, all blocking or all nonblocking; the parameter `collective` has these values.
        ranks: Numbers of ranks; the parameter `ranks` has these values.
        message_bytes: The sizes of the messages of a run, as the OSU micro-benchmarks count them.
        seconds: How long a run measures, all sizes together.
        knobs: What is tuned: `algorithms` of the collectives, `components` that may take their place, `transport`
            of messages within a node, `placement` of ranks on cores, `progress` of nonblocking ones; or
            `backends`, other libraries in place of MPI.
        compiler: The MPI library's compiler, by name or path.
        python: The interpreter that has PyTorch, for `backends`.
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
            msg = f"nonblocking ones ({', '.join(NONBLOCKING)}) have other figures than blocking ones; name one kind"
            raise ValueError(msg)
        return collectives

    @field_validator("knobs")
    @classmethod
    def _of_these(cls, knobs: list[Knobs], given: ValidationInfo) -> list[Knobs]:
        if "progress" in knobs and not set(given.data.get("collectives", NONBLOCKING)) & set(NONBLOCKING):
            msg = f"'progress' is made while nonblocking ones run: {', '.join(NONBLOCKING)}; leave it out"
            raise ValueError(msg)
        if "backends" in knobs and (len(knobs) > 1 or set(given.data.get("collectives", ())) & set(NONBLOCKING)):
            msg = "'backends' stands alone, for blocking collectives: what is tuned of MPI means nothing to the others"
            raise ValueError(msg)
        return knobs

    @property
    def overlap(self) -> bool:
        """Whether the collectives are nonblocking ones, behind computation."""
        return self.collectives[0] in NONBLOCKING

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> "MpiOptions":
        """Check options from a study file.

        Raises:
            PlanError: they have errors: all of them, each with its path.
        """
        return read_options(cls, options, "the benchmark of collective operations")
