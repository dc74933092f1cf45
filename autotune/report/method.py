"""The section of a report on how a study was measured, with the settings of the study."""

from autotune.formatting import join_words
from autotune.pictures.labels import count_noun
from autotune.report.section import Part, Section, Words
from autotune.results.pareto import ParetoFront
from autotune.results.summary import Summary
from autotune.statistics.ratio_words import ratio_title
from autotune.studyfile import DecisionsSection, RepeatsSection, StoppingSection, StudyFile, VerdictSection
from objectives.base import Metric


def method(summary: Summary) -> Section:
    """Return the section on the method."""
    study = summary.study
    verdict = study.verdict
    texts = [_objective(summary), _search(study)]
    if study.decisions is not None:
        texts.append(_table(study.decisions, verdict))
    elif study.stopping is not None:
        texts.append(_steps(study.stopping))
    else:
        texts.append(_repeats(study.repeats, summary.front))
    if study.has_one_winner:
        texts += [_confirmation(summary, verdict), _interval(verdict, summary.standings.metric)]
    return Section("method", "How it was measured", tuple[Part, ...](Words(text) for text in texts))


def _objective(summary: Summary) -> str:
    definition = summary.definition
    metric, space = definition.target, definition.space
    better = "greater is better" if metric.direction == "maximize" else "less is better"
    unit = f" in {metric.unit}" if metric.unit else ""
    text = f"The study optimised {metric.name}{unit}; {better}. "
    text += f"The space has {count_noun(len(space['parameters']), 'parameter')}"
    if space["constraints"]:
        text += (
            f" and {count_noun(len(space['constraints']), 'constraint')}; only configurations that satisfy all were run"
        )
    if definition.replay:
        return (
            f"{text}. This is a replay: every run was drawn from the recorded runs of its configuration, with "
            "simulated times and caps. The runs below are these."
        )
    if definition.is_asktell:
        return f"{text}. Other programs asked for the runs and made them, so autotune does not know where and how."
    return (
        f"{text}. A run counts only if it ended well and its answer, if the program has one, agrees with the "
        "default's. Every run had its own cores and an explicit environment."
    )


def _search(study: StudyFile) -> str:
    sampler, budget = study.sampler, study.budget
    what = "until more search no longer paid" if budget.auto else f"for {count_noun(budget.most, 'trial')}"
    return (
        f"The default configuration ran first. The sampler was {sampler.name} with the seed {sampler.seed}, {what}, "
        f"{count_noun(budget.workers, 'run')} at a time."
    )


def _repeats(repeats: RepeatsSection, front: ParetoFront | None) -> str:
    often = f"The default ran {_often(repeats.baseline_runs)} at first"
    if repeats.baseline_every:
        often += (
            f", and again after every {count_noun(repeats.baseline_every, 'run')} of others, so that drift is noticed"
        )
    decision = "it beats the best so far" if front is None else f"another beats it in {front.of_them} metrics"
    text = (
        f"{often}. Another configuration ran {_often(repeats.min_runs)}, and again, up to "
        f"{_often(repeats.max_runs)}, only while that could change whether {decision} (error "
        f"rate {repeats.error_rate:g}). The value of a trial is the {repeats.statistic} of its runs, "
        "on a logarithmic scale."
    )
    if repeats.caps and front is None:
        text += (
            " A run that had lost was stopped, by its time or its pace: it leaves a bound, which is never used as a "
            "value."
        )
    return text


def _table(decisions: DecisionsSection, verdict: VerdictSection) -> str:
    over = join_words(decisions.over)
    return (
        f"The study looked for the best setting for each value of {over}. A model of all runs predicts it, and each "
        f"prediction ran beside the default in {verdict.pairs} fresh, interleaved rounds, until the runs were spent. "
        f"In a cell with such rounds they alone decide: the default stays if the {verdict.confidence:.0%} interval "
        "holds 1. Some of many cells look better by chance, so the intervals are wider if fewer cells are better "
        "(Benjamini & Yekutieli 2005)."
    )


def _often(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _steps(stopping: StoppingSection) -> str:
    text = f"A trial was trained for at most {stopping.max_steps} steps, by the rule {stopping.rule}"
    if stopping.rule in {"hyperband", "asha"}:
        best = f"the best 1/{stopping.eta} continued from their checkpoints"
        text += f": at each rung, from step {stopping.min_steps} on, {best}"
    return f"{text}. The default was trained to its end. Values of trials that stopped early are not compared."


def _confirmation(summary: Summary, verdict: VerdictSection) -> str:
    present_verdict = summary.present_verdict
    pairs = f"{verdict.pairs} to {verdict.max_pairs}" if verdict.max_pairs > verdict.pairs else str(verdict.pairs)
    best = (
        f"The best {verdict.candidates} of tuning compete" if verdict.candidates > 1 else "The best of tuning competes"
    )
    share = f", or {verdict.of_gain:.0%} of the gain where that is more" if verdict.of_gain else ""
    paid = "" if verdict.of_tuning is None else f"They may take {verdict.of_tuning:.0%} of the tuning's core-seconds. "
    duet = present_verdict.mode == "duet" if present_verdict is not None else verdict.mode == "duet"
    made = (
        "duets: pairs side by side, on halves of the cores that are swapped each time"
        if duet
        else "interleaved pairs, in random order"
    )
    text = (
        f"{best} in up to {verdict.rounds} interleaved rounds; of "
        "those that do not differ beyond the noise the one with the fewest changes wins. Then winner and default run "
        f"again in {pairs} {made}, until the precision is {verdict.precision:.1%}{share}. {paid}"
        "Only these fresh runs count for the verdict, since the best of many noisy runs looks better than it is"
    )
    return (
        f"{text}. Here {count_noun(len(present_verdict.pairs), 'pair')} were made."
        if present_verdict is not None
        else f"{text}."
    )


def _interval(verdict: VerdictSection, metric: Metric) -> str:
    return (
        f"Each pair is compared by the logarithm of its ratio. The {ratio_title(metric)} is the pseudomedian of these "
        f"(Hodges & Lehmann 1963), and its {verdict.confidence:.0%} interval inverts Wilcoxon's signed-rank test "
        "(Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 2014, section 3.4): it is valid for any noise "
        "that both sides share. A gain is significant if the whole interval is above 1."
    )
