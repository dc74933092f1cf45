"""The section of a study that looks for a decision table."""

from pydantic import Field, ValidationInfo, field_validator

from autotune.studyfile.section import Section
from autotune.studyfile.weights import row_problem
from spaces import Value


class DecisionsSection(Section):
    """Look for a table of the best settings instead of one winner: a setting for each value of the parameters `over`.

    The user's program determines the values of `over`; the study does not choose them. `points` is the name of what one
    run measures at several values, such as message sizes. Fresh pairs of runs take `verdict_runs` runs at most.
    `weights` say how often a program uses each cell: rows of contexts, points and a `count`, or the CSV file that has
    them.
    """

    over: list[str] = Field(min_length=1)
    points: str | None = None
    verdict_runs: int = Field(default=400, ge=0)
    weights: str | list[dict[str, Value]] | None = None

    @field_validator("weights")
    @classmethod
    def _of_cells(
        cls, weights: str | list[dict[str, Value]] | None, given: ValidationInfo
    ) -> str | list[dict[str, Value]] | None:
        names = [*given.data.get("over", ()), *filter(None, [given.data.get("points")])]
        if isinstance(weights, list) and (wrong := row_problem(weights, names)) is not None:
            raise ValueError(wrong)
        return weights

    @property
    def rows(self) -> list[dict[str, Value]]:
        """The rows of the weights; empty without weights."""
        return self.weights if isinstance(self.weights, list) else []
