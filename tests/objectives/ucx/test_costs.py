import numpy as np
import pytest

from objectives.ucx.costs import costs
from spaces.expressions.quantities import column_of

MERGE = {"benchmark": ["merge"], "workers": [2], "rows": [50_000]}


def per_byte(facts, **settings):
    count = len(next(iter(settings.values()), [None]))
    columns = {name: column_of(values * count) for name, values in facts.items()}
    return costs(columns | {name: column_of(values) for name, values in settings.items()})


def total(found):
    return sum(found.seconds.values())


def test_segments_cost_less_the_larger_they_are_and_an_unset_one_has_ucx_s_size():
    first, second, unset = total(per_byte(MERGE, UCX_TCP_TX_SEG_SIZE=["8K", "256K", None]))
    assert second < first == pytest.approx(unset)


def test_below_the_rendezvous_threshold_messages_are_copied_above_it_they_shake_hands():
    found = per_byte(MERGE, UCX_RNDV_THRESH=["1K", "inf"]).seconds
    assert (found["copies"] > 0.0).tolist() == [False, True]
    assert (found["handshakes"] > 0.0).tolist() == [True, False]
    assert per_byte(MERGE, UCX_RNDV_SCHEME=["am"]).seconds["copies"][0] > 0.0


def test_small_messages_are_all_latency_and_large_ones_all_bytes():
    def parts(size):
        facts = {"benchmark": ["perftest"], "smallest_message_bytes": [size], "largest_message_bytes": [size]}
        return {name: float(column[0]) for name, column in per_byte(facts, x=[1]).seconds.items()}

    assert parts(8)["messages"] > 10 * parts(8)["bytes on the wire"]
    assert parts(2**22)["bytes on the wire"] > 100 * parts(2**22)["messages"]


def test_the_machine_s_own_network_counts_between_nodes():
    slow = {"network_bandwidth_bytes_per_s": [1e9], "nodes": [2]}
    fast = {"network_bandwidth_bytes_per_s": [25e9], "nodes": [2]}
    wire = [per_byte({**MERGE, **facts}, x=[1]).seconds["bytes on the wire"][0] for facts in (slow, fast)]
    assert wire[0] == pytest.approx(25 * wire[1])


def test_every_term_has_a_doubt_and_is_not_negative():
    found = per_byte(MERGE, UCX_RNDV_THRESH=["auto", None, "64K"], UCXPY_PROGRESS_MODE=["polling", None, "blocking"])
    assert found.doubts.keys() == found.seconds.keys()
    assert all((column >= 0.0).all() and np.isfinite(column).all() for column in found.seconds.values())
