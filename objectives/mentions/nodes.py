"""The nodes of a command's run, as the study file says or as its cores need, and their hardware threads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launchers.placement import fewest_nodes
from objectives.mentions.count import Count
from spaces import Constraint
from spaces.expressions.names import names_of
from spaces.parameters.errors import ExpressionError
from spaces.parameters.problem import Problem


@dataclass(frozen=True)
class Nodes:
    """The nodes that a run may have.

    Args:
        count: The number of nodes.
        cores_each: The cores of a node.
        threads_per_core: The hardware threads of a core.
        shared: Whether jobs on a part of a node may use the same cores.
    """

    count: int = 1
    cores_each: int = 1
    threads_per_core: int = 1
    shared: bool = False

    @classmethod
    def of(cls, machine: Mapping[str, Any]) -> "Nodes":
        """Return the nodes of a machine with these facts."""
        names = ("nodes", "cores_per_node", "threads_per_core")
        count, cores_each, threads_per_core = (int(machine.get(name, 1)) for name in names)
        return cls(count, cores_each, threads_per_core, bool(machine.get("shared_nodes")))

    def nodes_for(self, cores: int) -> int:
        """Return how many nodes are needed for `cores`; all nodes if there are too few cores and ranks share them."""
        return fewest_nodes(cores, self.cores_each, self.count)

    def missing(self, asked: Count | None, threads: Count = 1) -> list[Problem]:
        """Return a problem if every run asks for more nodes, or hardware threads of a core, than there are."""
        found = []
        if isinstance(asked, int) and asked > self.count:
            there = f"there {'is 1' if self.count == 1 else f'are {self.count}'}"
            text = f"each run asks for {asked} nodes; {there} (a site file says how many: nodes)"
            found.append(Problem(text, "options.nodes"))
        if isinstance(threads, int) and threads > self.threads_per_core:
            text = f"each run asks for {threads} hardware threads of each core, which has {self.threads_per_core} here"
            advice = "use no more, or a parameter whose high is the fact threads_per_core"
            found.append(Problem(f"{text}; {advice}", "options.threads_per_core"))
        return found

    def rules(self, asked: Count | None, threads: Count = 1) -> tuple[Constraint, ...]:
        """Return the rules that a run asks for no more nodes, and hardware threads of a core, than there are."""
        found = []
        if isinstance(asked, str) and _is_readable(asked):
            reason = "a run has no more nodes than there are"
            found.append(Constraint("options.nodes fits", f"({asked}) <= {self.count}", reason))
        if isinstance(threads, str) and _is_readable(threads):
            reason = "a run has no more hardware threads of a core than there are"
            rule = f"({threads}) <= {self.threads_per_core}"
            found.append(Constraint("options.threads_per_core fits", rule, reason))
        return tuple(found)

    def rules_of_one_process(self, threads: Count) -> tuple[Constraint, ...]:
        """Return the rule that a program without ranks has no more threads than a node, if there are several nodes.

        With one node, a study's own rules over the fact `cores` are enough; with several, `cores` counts all of them.
        """
        if self.count == 1 or not isinstance(threads, str) or not _is_readable(threads):
            return ()
        reason = "a program without ranks runs on one node, which has cores_per_node cores"
        rule = f"({threads}) <= {self.cores_each * self.threads_per_core}"
        return (Constraint("options.threads fits", rule, reason),)


def _is_readable(text: str) -> bool:
    """Whether it is an expression; if not, the option itself is reported."""
    try:
        names_of(text)
    except ExpressionError:
        return False
    return True
