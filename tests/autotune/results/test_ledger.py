from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autotune.records.outcome import DISTURBED, Outcome
from autotune.records.series import TUNING, WARM_UP, Series
from autotune.records.study import Run, TrialRecord
from autotune.results.ledger import Ledger, ledger_of
from launchers import Usage
from objectives.base import FailureKind


def ran(
    seconds,
    *,
    trial=0,
    series=TUNING,
    cores=2,
    gpus=0,
    nodes=1,
    cpu_s=0.0,
    ends="complete",
    forecast_s=None,
    told=(),
    **more,
):
    usage = Usage(elapsed_s=seconds, cpu_s=cpu_s)
    if ends == "complete":
        outcome = Outcome(metrics={"wall_s": seconds}, usage=usage, conditions=dict(told))
    elif ends == "capped":
        details = {} if forecast_s is None else {"forecast": {"value": forecast_s, "elapsed_s": forecast_s}}
        outcome = Outcome(bound=seconds, details=details, usage=usage)
    else:
        outcome = Outcome(failure=FailureKind.TIMED_OUT, usage=usage)
    resources = {"cores": cores, "gpus": gpus, "nodes": nodes, **more}
    return Run({"n": trial or 0}, trial, series, outcome=outcome, job={"resources": resources})


def trials(*runs, settled=True):
    """Return the trials with these runs."""
    found: dict[int, TrialRecord] = {}
    for run in runs:
        if run.trial is not None and run.series.is_tuning:
            found[run.trial] = found.get(run.trial, TrialRecord(run.trial, run.configuration, (), settled)).with_run(
                run
            )
    return list(found.values())


def book(*runs, winner=None, max_runs=4):
    return ledger_of(runs, trials(*runs), winner, max_runs)


def disturbed(seconds, series):
    run = ran(seconds, series=series.aside)
    return replace(run, outcome=run.outcome.set_aside(DISTURBED, "was disturbed"))


runs = st.builds(
    ran,
    st.floats(0, 1000),
    trial=st.one_of(st.none(), st.integers(0, 4)),
    series=st.sampled_from([TUNING, WARM_UP, Series.verdict(3), Series.ablate(3)]),
    cores=st.integers(1, 64),
    ends=st.sampled_from(["complete", "capped", "failed"]),
    forecast_s=st.one_of(st.none(), st.floats(0, 5000)),
)


def test_the_share_in_which_cores_were_busy_is_of_the_jobs_whose_processor_time_is_known():
    busy, idle = ran(10, cores=2, cpu_s=18.0), ran(10, cores=4, cpu_s=6.0)
    assert book(busy, idle).busy_share == pytest.approx(24 / 60)
    assert "cores: held 60 core-seconds, busy 24 (40%)" in book(busy, idle).text()
    assert book(busy, ran(10), ran(10, cores=8, nodes=2, cpu_s=30.0)).busy_share == pytest.approx(0.9)
    assert book(ran(10)).busy_share is None
    assert "busy" not in book(ran(10)).text()
    # The two clocks are not read at the same moment.
    assert book(ran(10, cores=1, cpu_s=10.01)).busy_share == 1.0
    # Two hardware threads of a core are one core; an excess of one run does not count for another.
    both = ran(10, cores=2, cpu_s=40.0, threads_per_core=2)
    assert book(both, ran(10, cores=2, cpu_s=4.0)).busy_share == pytest.approx(24 / 40)


@given(st.lists(runs, max_size=20))
def test_the_entries_add_up_to_all_core_seconds(made):
    found = book(*made)
    assert found.spent == pytest.approx(sum(run.core_s for run in made))
    assert found.to_dict()["spent"] == found.spent


def test_every_run_is_entered_by_what_it_was_for():
    found = book(
        ran(1, series=WARM_UP),
        ran(2, series=WARM_UP, ends="failed"),
        ran(4),
        ran(8, trial=1),
        ran(16, trial=1),
        ran(32, trial=2, ends="capped"),
        ran(64, trial=3, ends="failed"),
        ran(128, series=Series.verdict(1)),
        ran(256, trial=1, series=Series.verdict(1)),
        ran(512, trial=None, series=Series.ablate(1)),
        disturbed(1024, TUNING),
        disturbed(2048, Series.verdict(1)),
        ran(4096, trial=3, series=TUNING.aside, ends="failed"),
    )
    assert (found.baseline, found.first_runs, found.repeats) == (14, 16, 32)
    assert (found.capped, found.failed, found.aside) == (64, 128 + 8192, 2048 + 4096)
    assert (found.verdict, found.comparisons) == (768, 1024)
    assert "runs set aside 6144, the verdict 768 (5%), other comparisons 1024)" in found.text()


def test_a_warm_up_does_not_make_the_next_run_a_repeat():
    assert book(ran(1), ran(1, trial=1, series=WARM_UP), ran(5, trial=1)).repeats == 0


def test_a_cap_saved_what_was_forecast_and_nothing_where_nothing_was():
    known = ran(10, trial=1, ends="capped", forecast_s=25.0)
    unknown = ran(10, trial=2, ends="capped")
    assert book(ran(10), known, unknown).saved_by_caps == 30.0


def test_a_forecast_that_was_passed_already_saved_nothing():
    assert book(ran(10, trial=1, ends="capped", forecast_s=9.0)).saved_by_caps == 0.0


def test_racing_spared_the_repeats_of_what_was_settled_early():
    # The default is not a challenger; racing spared trial 1 three repeats of 10 s on 2 cores.
    found = book(ran(10), ran(10, trial=1), ran(10, trial=2, ends="failed"), ran(10, trial=3, ends="capped"))
    assert found.spared_by_racing == 60.0


def test_an_open_trial_has_spared_nothing_yet():
    made = [ran(10), ran(10, trial=1)]
    assert ledger_of(made, trials(*made, settled=False), None, 4).spared_by_racing == 0.0


def test_gpus_are_counted_in_their_own_seconds():
    assert book(ran(10, gpus=2), ran(10)).gpu_s == 20.0
    assert (
        "GPUs: held 20 GPU-seconds; how busy they were is not known: no meter measured it"
        in book(ran(10, gpus=2)).text()
    )


def test_cards_that_were_not_there_were_not_held():
    assert book(ran(10, gpus=4, cards=[{"name": "GPU-1", "vendor": "nvidia", "cpus": []}])).gpu_s == 10.0


def test_where_nothing_lists_the_cards_a_run_held_as_many_as_it_asked_for():
    # The pool of cards gives out such a card if nothing lists the cards.
    whatever = [{"name": "", "vendor": "", "cpus": []}]
    assert book(ran(10, gpus=4, cards=whatever)).gpu_s == 40.0
    assert book(ran(10, cards=[])).gpu_s == 0.0


def test_energy_is_shown_with_the_time_of_the_metered_cards():
    told = ran(10, gpus=1, told={"gpu_energy_j": 2.5e4})
    text = book(told).text()
    assert text.endswith(
        "GPUs: held 10 GPU-seconds; how busy they were is not known: no meter measured it, and took 25 kJ"
    )
    assert book(told, ran(10, gpus=3)).text().endswith("and took 25 kJ in 10 GPU-seconds")


def test_the_busy_time_of_cards_is_that_of_the_meters():
    half, idle = {"gpu_busy_share": 0.5, "gpu_energy_j": 5e5}, {"gpu_busy_share": 0.0, "gpu_energy_j": 4e5}
    made = ran(3600, gpus=2, told=half), ran(3600, gpus=1, told=idle)
    found = book(*made)
    assert found.gpus.share == found.to_dict()["gpu_busy_share"] == pytest.approx(1 / 3)
    assert "GPUs: held 3 GPU-hours, busy 1 (33%), and took 0.25 kWh" in found.text()
    # Cards without metered figures are not called idle.
    said = book(*made, ran(3600, gpus=3)).text()
    assert "GPUs: held 6 GPU-hours; where meters measured it, held 3 GPU-hours, busy 1 (33%)" in said
    assert (
        book(ran(10, gpus=1, told={"gpu_busy_share": 0.2})).text().endswith("GPUs: held 10 GPU-seconds, busy 2 (20%)")
    )


def test_a_study_pays_after_as_many_runs_as_make_up_for_what_it_cost():
    found = book(ran(3, series=WARM_UP), ran(10), ran(5, trial=1), ran(13, trial=2), winner=1)
    # 62 core-seconds were spent, and each run of the winner saves 10; a warm-up does not count.
    assert found.saved_per_run == 10.0
    assert found.pays_after == 7
    assert "paid for after 7 production runs" in found.text()


def test_cores_are_part_of_the_price():
    # Twice as fast, on four times the cores.
    found = book(ran(10, cores=2), ran(5, trial=1, cores=8), winner=1)
    assert found.saved_per_run == -20.0
    assert found.pays_after is None
    assert "never paid for: the winner costs 20 core-seconds more a run than the default" in found.text()


def test_a_winner_of_the_same_cost_is_never_paid_for():
    text = book(ran(9), ran(9, trial=1), winner=1).text()
    assert "never paid for: the configuration to use costs as many core-seconds as the default" in text


@pytest.mark.parametrize(
    ("saved", "words"), [(0.0123, "0.0123"), (1.26, "1.26"), (99.96, "100"), (123.4, "123"), (54321.0, "54,321")]
)
def test_what_a_run_saves_has_digits_enough(saved, words):
    assert Ledger(first_runs=100.0, saved_per_run=saved).text().endswith(f"each of which saves {words} core-seconds")


def test_a_server_is_not_paid_for_by_shorter_loads():
    made = [replace(run, job={**run.job, "server": {"argv": ["web"]}}) for run in (ran(10), ran(5, trial=1))]
    assert book(*made, winner=1).saved_per_run is None
    assert "paid for" not in book(*made, winner=1).text()


def test_without_a_winner_the_ledger_does_not_mention_paying_off():
    found = book(ran(10), ran(5, trial=1))
    assert (found.saved_per_run, found.pays_after) == (None, None)
    assert "paid for" not in found.text()


@given(st.floats(0, 1e6), st.floats(1e-3, 1e3))
@example(8.4, 0.6)
def test_after_that_many_runs_and_no_sooner_the_savings_exceed_the_cost(spent, saved):
    after = Ledger(first_runs=spent, saved_per_run=saved).pays_after
    assert after * saved >= spent - 1e-6
    assert (after - 1) * saved < spent or after == 0


def test_a_replay_of_a_table_without_times_spent_nothing():
    assert Ledger().text() == "spent: 0 core-seconds"
