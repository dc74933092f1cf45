"""The table of commands: name, group, module and summary of each, so that help need not import the modules."""

from dataclasses import dataclass

SESSION, LOOK, MEASURE = "A session", "Look at results", "Runs and jobs"
PREDICT, SERVE, SET_UP = "Predict", "Serve", "Machine and storage"


@dataclass(frozen=True)
class CommandEntry:
    """A command, or a group of commands.

    Attributes:
        name: Its name on the command line.
        group: The heading under which the help lists it.
        summary: One line of help; the function's docstring begins with it.
        module: The module in `autotune.cli.commands`; empty for a group that only has `commands`.
        function: The function in the module that runs the command.
        command_class: A class in the module that replaces `TyperCommand`; None for the usual class.
        commands: The commands of a group.
    """

    name: str
    group: str
    summary: str
    module: str = ""
    function: str = ""
    command_class: str | None = None
    commands: "tuple[CommandEntry, ...]" = ()


_TOKENS = (CommandEntry("token", "Commands", "Make, list or remove access tokens of the service.", "serve", "token"),)
_STUDIES, _MEASUREMENTS = "Studies", "Measurements"
_STORAGE = (
    CommandEntry("list", _STUDIES, "List the studies of a storage.", "storage", "list_studies"),
    CommandEntry("show", _STUDIES, "Show the kind, version and size of a storage.", "storage", "show"),
    CommandEntry("merge", _STUDIES, "Copy the studies of several storages into one.", "storage", "merge"),
    CommandEntry("rename", _STUDIES, "Rename a study.", "storage", "rename"),
    CommandEntry("label", _STUDIES, "Tag a study, add a note, or archive it.", "storage", "label"),
    CommandEntry("reset", _STUDIES, "Remove all trials of a study.", "storage", "reset"),
    CommandEntry("delete", _STUDIES, "Delete a study, its runs and their folders.", "storage", "delete"),
    CommandEntry("clean", _STUDIES, "Remove run folders whose results are stored.", "storage", "clean"),
    CommandEntry("import", _MEASUREMENTS, "Import measurements made elsewhere.", "importing", "import_"),
    CommandEntry("reread", _MEASUREMENTS, "Read the kept outputs of a study again.", "storage", "reread"),
)

COMMANDS = (
    CommandEntry("init", SESSION, "Write a commented study file for a command.", "init", "init", "WithCommand"),
    CommandEntry("check", SESSION, "Check a study file, and list every mistake.", "check", "check"),
    CommandEntry("study", SESSION, "Tune a program. The same command again resumes.", "study", "study", "WithWords"),
    CommandEntry("best", SESSION, "Print the winner, its speed-up and how sure it is.", "best", "best"),
    CommandEntry("trials", LOOK, "Print the trials or the runs of a study.", "trials", "trials"),
    CommandEntry("studies", LOOK, "List the studies that ship, and their results here.", "studies", "studies"),
    CommandEntry("report", LOOK, "Write a report of studies: HTML, Markdown, JSON or PDF.", "report", "report"),
    CommandEntry("picture", LOOK, "Draw a metric over parameters, or a decision table.", "report", "picture"),
    CommandEntry("importance", LOOK, "Print how much each parameter matters.", "report", "importance"),
    CommandEntry("compare", MEASURE, "Compare commands in interleaved runs.", "compare", "compare", "WithWords"),
    CommandEntry("confirm", MEASURE, "Compare the best trials with the default in fresh runs.", "confirm", "confirm"),
    CommandEntry("ablate", MEASURE, "Measure what each changed option of the winner gains.", "ablate", "ablate"),
    CommandEntry("sweep", MEASURE, "Measure the values of one or two parameters.", "sweep", "sweep", "WithWords"),
    CommandEntry("watch", MEASURE, "Check with a few runs that the winner still wins.", "watch", "watch"),
    CommandEntry("cancel", MEASURE, "Cancel a study's queued jobs, and stop its process.", "cancel", "cancel"),
    CommandEntry("pilot", MEASURE, "Write a job script that tunes inside one job.", "pilot", "pilot", "PassOptionsOn"),
    CommandEntry("predict", PREDICT, "Predict the best configurations; compare machines.", "predict", "predict"),
    CommandEntry(
        "rightsize", PREDICT, "Find nodes, ranks and threads for a deadline or a budget.", "rightsize", "rightsize"
    ),
    CommandEntry("model", PREDICT, "Show the model's data, and how well it predicts.", "model", "model"),
    CommandEntry("replay", PREDICT, "Replay recorded measurements with smaller budgets.", "replay", "replay"),
    CommandEntry("serve", SERVE, "Serve studies to browsers and programs.", "serve", "serve", commands=_TOKENS),
    CommandEntry("mcp", SERVE, "Let an agent use studies, by the Model Context Protocol.", "mcp", "mcp"),
    CommandEntry("machine", SET_UP, "Describe a machine, or measure this one.", "machine", "machine"),
    CommandEntry("doctor", SET_UP, "List what is installed here, and what is missing.", "doctor", "doctor"),
    CommandEntry("storage", SET_UP, "List, merge, rename, label, clean or delete studies.", commands=_STORAGE),
)
