"""The table of commands: each command's name, group, module and summary, known without importing the module."""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

TUNE, LOOK, PREDICT, SERVE, SET_UP = "Tune", "Look at results", "Predict", "Serve", "Set up"

# The options of `study` are passed on, so `pilot` must not judge them by its own.
_PASS_ON = MappingProxyType({"allow_extra_args": True, "ignore_unknown_options": True})


@dataclass(frozen=True)
class CommandEntry:
    """A command: `module` in `autotune.cli.commands` has the `function`, whose docstring begins with the `summary`.

    `settings` are its context settings; `command_class` names a class in the module, if the command has one of its own.
    """

    name: str
    group: str
    module: str
    function: str
    summary: str
    command_class: str | None = None
    settings: MappingProxyType[str, Any] = field(default_factory=lambda: MappingProxyType({}))


COMMANDS = (
    CommandEntry("study", TUNE, "study", "study", "Tune a program. The same command again resumes."),
    CommandEntry("pilot", TUNE, "pilot", "pilot", "Write a job script that tunes inside one job.", settings=_PASS_ON),
    CommandEntry("cancel", TUNE, "cancel", "cancel", "Cancel a study's queued jobs, and stop its process."),
    CommandEntry("confirm", TUNE, "compare", "confirm", "Compare the best trials with the default in fresh runs."),
    CommandEntry("watch", TUNE, "watch", "watch", "Check by a few runs that the winner still wins."),
    CommandEntry("ablate", TUNE, "compare", "ablate", "Measure what each changed option of the winner is worth."),
    CommandEntry("reread", TUNE, "keeping", "reread", "Read the kept outputs of a study's runs again."),
    CommandEntry("sweep", TUNE, "sweep", "sweep", "Measure one parameter, or two, over their values."),
    CommandEntry("studies", LOOK, "known", "studies", "List the studies that ship, with what they came to here."),
    CommandEntry("list", LOOK, "query", "list_studies", "List the studies in a storage."),
    CommandEntry("known", LOOK, "known", "known", "Show what is known to work, for each program and machine."),
    CommandEntry("show", LOOK, "query", "show", "Show the state of a study: baseline, winner, verdict."),
    CommandEntry("best", LOOK, "best", "best", "Print the winner, its speed-up and its uncertainty."),
    CommandEntry("trials", LOOK, "query", "trials", "Print every trial of a study."),
    CommandEntry("runs", LOOK, "query", "runs", "Print every run of a study: where, when and how."),
    CommandEntry("report", LOOK, "report", "report", "Write a report of studies: HTML, Markdown or JSON."),
    CommandEntry("picture", LOOK, "report", "picture", "Draw a metric over parameters, or a decision table."),
    CommandEntry("importance", LOOK, "report", "importance", "Say how much each parameter matters."),
    CommandEntry("export", LOOK, "report", "export", "Print every measurement of a study as CSV or JSON."),
    CommandEntry("predict", PREDICT, "predict", "predict", "Predict the best configurations; compare machines."),
    CommandEntry(
        "rightsize",
        PREDICT,
        "rightsize",
        "rightsize",
        "Find nodes, ranks and threads for a deadline or a budget.",
    ),
    CommandEntry("model", PREDICT, "model", "model", "Show the model's data, and how well it predicts."),
    CommandEntry("import", PREDICT, "importing", "import_", "Import measurements that were made elsewhere."),
    CommandEntry("replay", PREDICT, "replay", "replay", "Replay recorded measurements with smaller budgets."),
    CommandEntry("serve", SERVE, "serve", "serve", "Serve studies to browsers and programs."),
    CommandEntry("mcp", SERVE, "mcp", "mcp", "Let an agent use studies, by the Model Context Protocol."),
    CommandEntry("token", SERVE, "serve", "token", "Make, list or remove access tokens of the service."),
    CommandEntry("init", SET_UP, "init", "init", "Write a commented study file for a command.", "WithCommand"),
    CommandEntry("check", SET_UP, "check", "check", "Check a study file, and say every mistake."),
    CommandEntry("space", SET_UP, "space", "space", "Show a study's space, or check one configuration."),
    CommandEntry("machine", SET_UP, "machine", "machine", "Describe a machine, or measure this one."),
    CommandEntry("doctor", SET_UP, "doctor", "doctor", "List what is installed here, and what is missing."),
    CommandEntry("merge", SET_UP, "merge", "merge", "Put the studies of several storages into one."),
    CommandEntry("rename", SET_UP, "keeping", "rename", "Give a study another name."),
    CommandEntry("label", SET_UP, "keeping", "label", "Tag a study, note a text of it, or archive it."),
    CommandEntry("reset", SET_UP, "keeping", "reset", "Forget all trials of a study; its name and file stay."),
    CommandEntry("delete", SET_UP, "keeping", "delete", "Delete a study: its trials, its runs and their folders."),
    CommandEntry("clean", SET_UP, "keeping", "clean", "Remove the folders of runs whose results are stored."),
    CommandEntry("storage", SET_UP, "storage", "storage", "Show what a storage holds."),
)
