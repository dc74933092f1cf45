"""The section of a study that looks for a decision table."""

from pydantic import Field, ValidationInfo, field_validator

from autotune.studyfile.section import Section
from autotune.studyfile.weights import row_problem
from spaces import Value


class DecisionsSection(Section):
    """A table of the best settings, instead of one winner: what to use for each value of the parameters `over`.

    Those are given by the user's program and not chosen. `points` names what one run measures several values of
    (message sizes). Fresh pairs of runs take `verdict_runs` runs at most. `weights` are rows of contexts, points and a
    `count`, or the CSV file that has them: how often a program uses each cell.
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
        """The rows of the weights; none without them."""
        return self.weights if isinstance(self.weights, list) else []
