"""A stored study of a command, with hand-made folders of runs."""

import json
from dataclasses import asdict, replace
from pathlib import Path

from autotune.execution.run_folder import clean
from autotune.execution.task import read_outcome
from autotune.planning.prepare import Prepared
from autotune.records.series import TUNING
from autotune.records.study import Run
from autotune.search.distributions import distributions_of
from autotune.storage.observation import Observation
from autotune.storage.stored_study import open_stored_study
from autotune.storage.study_store import StudyStore
from autotune.tuning.rereading import reread
from launchers import STDERR, STDOUT, EndReason, JobState, JobStatus, Usage
from launchers.supervisor import STATUS_FILE
from objectives.base import Output
from objectives.command import plan
from spaces import Integer, Space
from tests.support.fakes import definition, study_file

SPACE = Space([Integer.range("x", 1, 9, default=1)])
TIME = {"name": "time", "pattern": r"time (\S+)", "unit": "s"}
OPTIONS = {"argv": ["true", "{x}"], "metrics": [TIME], "success": ["DONE"]}


class CommandStudy:
    """A study of a command; `run` writes the folder of a run and stores it."""

    def __init__(self, folder: Path, name: str = "mine", url: str = "") -> None:
        self.name = name
        self.folder, self.url, self.made = folder, url or f"sqlite:///{folder / 'autotune.db'}", 0
        self.options = OPTIONS
        self.store = StudyStore.create(self.url, self.name, self.prepared.definition)

    @property
    def prepared(self) -> Prepared:
        planned = plan(self.options, machine={}, run_job=lambda job: None, folder=self.folder)  # type: ignore[arg-type, return-value]
        about = definition(SPACE, objective="command", metrics=planned.objective.metrics, identity=planned.identity)
        return Prepared(study_file(), planned, SPACE, replace(about, reading=planned.reading))

    def run(self, x, text, series=TUNING, *, round_number=0, exit_code=0, is_trial=True, **files):
        """Store a run that printed `text`, with the outcome that the present options read; return its folder."""
        self.made += 1
        folder = self.folder / "autotune-runs" / self.name / f"{self.made:05d}"
        folder.mkdir(parents=True)
        usage = Usage(float(self.made), 0.5, 1000)
        status = JobStatus(JobState.ENDED, EndReason.EXITED, exit_code, usage)
        said = {"state": status.state, "reason": status.reason, "exit_code": exit_code, "message": ""}
        (folder / STATUS_FILE).write_text(json.dumps(said | asdict(usage)))
        (folder / STDOUT).write_text(text)
        (folder / STDERR).write_text("")
        for name, content in files.items():
            (folder / name).write_text(content)
        outcome = read_outcome(self.prepared.plan.objective, Output(text, "", status, folder), None, None)
        clean(folder)
        trial = next((t.number for t in self.store.trials() if t.configuration == {"x": x}), None)
        if trial is None and is_trial:
            trial = self.store.add_trial({"x": x}, distributions_of(SPACE))
        outcome = replace(outcome, usage=usage)
        job = {"folder": str(folder)}
        self.store.add_runs([Run({"x": x}, trial, series, round_number, outcome=outcome, job=job)])
        value = outcome.metrics.get("time")
        if series.is_tuning:
            self.store.settle_all({trial: Observation(value=value)})
        return folder

    def read(self, **changes):
        """Open the study with other options; return the result of rereading its runs."""
        self.options = {**OPTIONS, **changes}
        self.store = StudyStore.create(self.url, self.name, self.prepared.definition)
        return reread(self.store, self.prepared)

    @property
    def values(self):
        return {trial.number: trial.measured("time") for trial in open_stored_study(self.url, self.name).trials()}
