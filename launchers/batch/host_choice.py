"""The choice of a job's host: at a site whose scheduler can be told."""

from collections.abc import Collection
from dataclasses import dataclass

from launchers.batch.commands import Commands
from launchers.batch_systems.base import Scheduler
from launchers.job import Place
from launchers.site import Site


@dataclass(frozen=True)
class SchedulerHosts:
    """How jobs of a scheduler are told on which host to start, which `commands` reach."""

    scheduler: Scheduler
    site: Site
    commands: Commands

    @property
    def is_free(self) -> bool:
        """Whether a job can be told its host."""
        return self.scheduler.places(self.site)

    def another(self, cores: int, known: Collection[str]) -> Place | None:
        """Return where a job of so many cores starts on a host that is not `known`; None: there is no such host.

        It is told which hosts to avoid, or the scheduler is asked for one that could start it.
        """
        question = self.scheduler.hosts
        if question is None:
            return Place(avoid=tuple(sorted(known)))
        answer = self.commands(question.command)
        short = {host.partition(".")[0] for host in known}
        able = question.read(answer.stdout, self.site, cores) if answer.code == 0 else ()
        return next((Place(host) for host in able if host.partition(".")[0] not in short), None)
