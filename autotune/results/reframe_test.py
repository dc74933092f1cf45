"""Write a ReFrame test that checks whether a study's winner is still as much better than the default as its verdict.

The test makes a check of `autotune watch`: a few fresh pairs, run and read as for the verdict. The mean of its m pairs
has an error, as the mean of the verdict's n pairs has, and checks of different days differ. So if nothing has changed,
the mean is expected in the verdict's interval, widened by sqrt(1 + n/m) and by the spread between checks.
"""

import re
from collections.abc import Sequence
from math import exp, hypot, log, sqrt

from autotune import __version__
from autotune.comparison.watching.judgement import Quantity
from autotune.comparison.watching.watch import Watch
from autotune.storage.readable_study import ReadableStudy

_NORMAL_95 = 1.96

_TEST = """\
# {sentence}
# Made by autotune {version} from study {study}: its winner against its default, in {pairs} fresh pairs of runs.
#     reframe -c THIS_FILE -r --performance-report

import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.backends import getlauncher


@rfm.simple_test
class {name}(rfm.RunOnlyRegressionTest):
    descr = {description!r}
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = {executable!r}
    executable_opts = {options!r}
    num_tasks = 1
    num_cpus_per_task = {cores}
    # The verdict is {ratio:.4g} ({low:.4g} to {high:.4g}), from {judged} pairs. If nothing has changed, {pairs} pairs
    # of another day are expected within {percent:.1f} % of it.
    reference = {{"*": {{"speed_up": ({ratio:.4f}, {lower:.4f}, {upper:.4f}, "x")}}}}

    @run_before("run")
    def start_no_ranks(self):
        # autotune starts the ranks itself, as it did for the verdict.
        self.job.launcher = getlauncher("local")()

    @sanity_function
    def nothing_has_changed(self):
        found = self.found()
        if found is None:
            said = sn.extractsingle(r"(?s)(.*)", self.stderr, 1)
            return sn.assert_true(False, msg=f"autotune made no check: {{said}}")
        return sn.assert_true(not found["alarms"], msg="; ".join(found["alarms"]))

    @performance_function("x")
    def speed_up(self):
        return self.found()["checks"][-1]["ratio"]

    @performance_function({unit!r}, perf_key="winner")
    def value_of_the_winner(self):
        return self.mean(1)

    @performance_function({unit!r}, perf_key="default")
    def value_of_the_default(self):
        return self.mean(0)

    def mean(self, side):
        pairs = self.found()["checks"][-1]["pairs"]
        return sum(pair[side] for pair in pairs) / len(pairs)

    def found(self):
        with open(os.path.join(self.stagedir, sn.evaluate(self.stdout))) as printed:
            text = printed.read()
        return json.loads(text) if text.strip() else None
"""


def reframe_test(store: ReadableStudy, command: Sequence[str], storage: str) -> str:
    """Return the text of a test that starts autotune by `command`, with the study's `storage`.

    Raises:
        AutotuneError: The study has no verdict, or its winner is not better than the default.
    """
    watch = Watch.of(store, store.definition.study_file.repeats.statistic)
    verdict, metric, pairs = watch.verdict, watch.standings.metric, watch.pairs
    ratio, low, high = verdict.interval(metric)
    half = log(high / low) / 2.0
    tolerance = hypot(half * sqrt(1.0 + len(verdict.pairs) / pairs), _NORMAL_95 * Quantity.GAIN.check_effect)
    series = verdict.series
    watched = ["watch", store.name, "--storage", storage, "--pairs", str(pairs), "--wait", "--json"]
    sentence = verdict.sentence(metric)
    return _TEST.format(
        sentence=sentence,
        version=__version__,
        study=store.name,
        name=_class_name(store.name),
        description=f"autotune: the winner of study {store.name} (trial {verdict.winner}) against its default",
        executable=command[0],
        options=[*command[1:], *watched],
        cores=max((run.cores for run in store.runs() if run.series == series), default=1),
        ratio=ratio,
        low=low,
        high=high,
        judged=len(verdict.pairs),
        pairs=pairs,
        percent=100.0 * tolerance,
        lower=exp(-tolerance) - 1.0,
        upper=exp(tolerance) - 1.0,
        unit=metric.unit,
    )


def _class_name(study: str) -> str:
    words = re.split(r"[^A-Za-z0-9]+", study)
    return "Autotune" + "".join(word[:1].upper() + word[1:] for word in words)
