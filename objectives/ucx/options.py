"""The options of a study of UCX."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from objectives.base import PlanError
from objectives.options import read_options
from spaces.parameters.problem import Problem

Benchmark = Literal["merge", "perftest"]
Test = Literal["tag_bw", "tag_lat", "stream_bw", "stream_lat", "am_bw", "am_lat"]


@dataclass(frozen=True)
class Size:
    """A workload.

    Args:
        rows: The rows of each worker's two frames, 16 bytes a row.
        iterations: Iterations of the merge; small ones are repeated more often.
        warm_up: Iterations before those.
        message_bytes: The message sizes of ucx_perftest.
    """

    rows: int
    iterations: int
    warm_up: int
    message_bytes: tuple[int, ...]


SIZES: Mapping[str, Size] = {
    "small": Size(rows=50_000, iterations=30, warm_up=5, message_bytes=(8, 512, 8192)),
    "large": Size(rows=1_000_000, iterations=6, warm_up=1, message_bytes=(2**16, 2**20, 2**22)),
}
_PERFTEST_ITERATIONS = 3
_PERFTEST_WARM_UP = 0  # ucx_perftest makes warm-up messages itself


class UcxOptions(BaseModel):
    """The `[options]` of a study of UCX.

    Args:
        benchmark: `merge` (ucxx exchanges and merges the frames of a distributed table), `perftest` (ucx_perftest
            between two processes), or `auto`: merge if a Python has ucxx, otherwise perftest.
        size: The workload, `small` or `large`; see `SIZES`.
        workers: The processes of the merge.
        iterations: Iterations of a run; their median counts.
        warm_up: Iterations before those, which do not count.
        variables: Variables to tune besides the default ones: names, or patterns like `UCX_TCP_*`.
        only: Tune only these, by name or pattern, including UCXPY_ variables; empty means no limit.
        test: The test of ucx_perftest.
        message_bytes: The message sizes of ucx_perftest; by default those of `size`.
        python: The interpreter with ucxx, by name or path; by default autotune looks for one.
        transports: Use only these, by their names in `ucx_info -d`: ["tcp"], ["sysv", "cma"]; empty means all.
        server: The command that starts another on the host of ucx_perftest's server: ["ssh", "node2"].
        server_address: The name or address of that host for the client.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    benchmark: Literal["auto", "merge", "perftest"] = "auto"
    size: Literal["small", "large"] = "small"
    workers: int = Field(default=2, ge=2, le=64)
    iterations: int | None = Field(default=None, ge=1)
    warm_up: int | None = Field(default=None, ge=0)
    variables: list[str] = Field(default_factory=list)
    only: list[str] = Field(default_factory=list)
    test: Test = "tag_bw"
    message_bytes: list[int] = Field(default_factory=list)
    python: str | None = None
    transports: list[str] = Field(default_factory=list)
    server: list[str] = Field(default_factory=list)
    server_address: str | None = None

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> "UcxOptions":
        """Check options from a study file.

        Raises:
            PlanError: The options have errors; all are reported, each with its path.
        """
        checked = read_options(cls, options, "ucx")
        wrong = [size for size in checked.message_bytes if not 1 <= size <= 2**30]
        if wrong:
            msg = f"message sizes are from 1 to 2**30 bytes, got {wrong}"
            raise PlanError(Problem(msg, "options.message_bytes"))
        if bool(checked.server) != bool(checked.server_address):
            msg = 'another host needs both: server = ["ssh", "node2"], server_address = "node2"'
            raise PlanError(Problem(msg, "options.server"))
        if checked.server and checked.benchmark != "perftest":
            msg = 'only ucx_perftest runs between two hosts: benchmark = "perftest"'
            raise PlanError(Problem(msg, "options.benchmark"))
        strange = [name for name in (*checked.variables, *checked.only) if not name.startswith(("UCX_", "UCXPY_", "*"))]
        if strange:
            raise PlanError(Problem(f"names of variables begin with UCX_ or UCXPY_, got {strange}", "options"))
        return checked

    @property
    def workload(self) -> Size:
        """The workload of the chosen size."""
        return SIZES[self.size]

    @property
    def nodes(self) -> int:
        """The number of nodes of the processes."""
        return 2 if self.server else 1

    def spans_bytes(self, benchmark: Benchmark) -> tuple[tuple[int, int], ...]:
        """Return the ranges of message sizes: (from, to) in bytes."""
        if benchmark == "perftest":
            return tuple((size, size) for size in self.sizes_bytes())
        # A counter, and a worker's share of a table, which hashing makes a little smaller or larger.
        share = 16 * self.workload.rows / self.workers
        return ((1, 8), (int(0.9 * share), int(1.1 * share)))

    def sizes_bytes(self) -> tuple[int, ...]:
        """Return the message sizes of ucx_perftest."""
        return tuple(self.message_bytes) or self.workload.message_bytes

    def repeats(self, benchmark: Benchmark) -> tuple[int, int]:
        """Return the numbers of iterations and of warm-up iterations of a run."""
        size = self.workload
        own = (size.iterations, size.warm_up) if benchmark == "merge" else (_PERFTEST_ITERATIONS, _PERFTEST_WARM_UP)
        return (
            own[0] if self.iterations is None else self.iterations,
            own[1] if self.warm_up is None else self.warm_up,
        )
