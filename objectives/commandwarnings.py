"""What is right in the options of a command, and yet unwise."""

from collections.abc import Iterator

from objectives.base import Metric
from objectives.commandoptions import CommandOptions


def option_warnings(options: CommandOptions, target: Metric) -> Iterator[str]:
    """Yield a sentence for each; `target` is the metric that is optimised."""
    if not options.metrics:
        yield "no metric is declared: the time of the whole run is optimised, the start of the program included"
    if options.prepare and any(metric.kind == "time" for metric in options.metrics[:1]) | (not options.metrics):
        yield "runs that have lost are not stopped early, since the time of what prepares them does not count"
    elif target.kind == "other":
        yield (
            f"{target.name} has no kind: runs that have lost cannot be stopped early (kind = 'time' if it is the time "
            "of the run or of its main part, 'rate' if it is work per time, with progress)"
        )
    elif target.kind == "rate" and options.progress is None:
        yield f"{target.name} is a rate, and there is no progress: runs that have lost cannot be stopped early"
    if options.answer is None and options.success:
        yield "no answer is compared with the default's: nothing but the success patterns would notice a fast wrong one"
    elif options.answer is None:
        yield "no answer is checked: a fast wrong answer would not be noticed"
