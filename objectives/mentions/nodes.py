"""The nodes that a run of a command is spread over: as many as its study file says, or as its cores need."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launchers.placement import fewest_nodes
from objectives.mentions.count import Count
from spaces import Constraint
from spaces.parameters.problem import Problem


@dataclass(frozen=True)
class Nodes:
    """The nodes that a run may have."""

    count: int = 1
    cores_each: int = 1

    @classmethod
    def of(cls, machine: Mapping[str, Any]) -> "Nodes":
        """Return those of a machine with these facts."""
        return cls(int(machine.get("nodes", 1)), int(machine.get("cores_per_node", 1)))

    def needed(self, cores: int) -> int:
        """Return how many nodes have that many cores; all of them where ranks share cores."""
        return fewest_nodes(cores, self.cores_each, self.count)

    def missing(self, asked: Count | None) -> list[Problem]:
        """Return what a run lacks that asks for that number of nodes, if it is the same for every run."""
        if not isinstance(asked, int) or asked <= self.count:
            return []
        there = f"there {'is 1' if self.count == 1 else f'are {self.count}'}"
        return [
            Problem(f"each run asks for {asked} nodes; {there} (a site file says how many: nodes)", "options.nodes")
        ]

    def rule(self, asked: Count | None) -> tuple[Constraint, ...]:
        """Return the rule that a run asks for no more nodes than there are."""
        if not isinstance(asked, str):
            return ()
        return (
            Constraint("options.nodes fits", f"({asked}) <= {self.count}", "a run has no more nodes than there are"),
        )
