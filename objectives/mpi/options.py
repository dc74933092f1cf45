"""What a study file may say about collective operations."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from objectives.options import read_options

Collective = Literal["allreduce", "reduce", "bcast", "allgather", "alltoall", "reduce_scatter", "barrier"]
Knobs = Literal["algorithms", "components", "transport", "placement"]

COLLECTIVES: tuple[Collective, ...] = get_args(Collective)
REDUCTIONS = frozenset({"allreduce", "reduce", "reduce_scatter"})

NUMBER_BYTES = 4
"""What is exchanged are numbers of this size: a message holds a whole number of them."""

_LARGEST = 2**26  # times the ranks, twice, is what a rank allocates


class MpiOptions(BaseModel):
    """The `[options]` of a study of collective operations.

    Args:
        collectives: Which ones; the parameter `collective` has these values.
        ranks: Numbers of ranks; the parameter `ranks` has these values.
        message_bytes: The sizes of the messages of a run, as the OSU micro-benchmarks count them.
        seconds: How long a run measures, all sizes together.
        knobs: What is tuned: `algorithms` of the collectives, `components` that may take their place, `transport`
            of messages within a node, `placement` of ranks on cores.
        compiler: The MPI library's compiler, by name or path.
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

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> "MpiOptions":
        """Check options from a study file.

        Raises:
            PlanError: they have errors: all of them, each with its path.
        """
        return read_options(cls, options, "the benchmark of collective operations")
