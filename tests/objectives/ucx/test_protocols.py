from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.ucx.protocols import PROTOCOLS, Protocols, choices

OUTPUTS = Path(__file__).parents[1] / "outputs"
RUN = (OUTPUTS / "ucx-protocols-tcp.stdout").read_text()
FORETOLD = {features: (OUTPUTS / f"ucx-endpoint-tcp-{features}.stdout").read_text() for features in ("t", "te")}
SPANS = ((1, 8), (360_000, 440_000))
SEEN = {PROTOCOLS: choices(RUN, SPANS)}
TCP = {"UCX_TLS": "tcp"}


def table(low_protocol, threshold="8K"):
    return "\n".join(
        [
            "# +---------------------------+----------------------------------------------+",
            "# | ucx_info intra-node cfg#0 | tagged message by ucp_tag_send* from host memory |",
            f"# |                0..{threshold} | {low_protocol} | tcp/lo |",
            f"# |              {threshold}..inf | (?) rendezvous | 52% on tcp/lo and 48% on tcp/eth0 |",
        ]
    )


def test_a_runs_own_tables_are_read():
    large = "360000 to 440000 bytes: (?) rendezvous fragmented copy-in copy-out on tcp/lo"
    kinds = {
        "tagged message by ucp_tag_send* from host memory": "eager zero-copy copy-out on tcp/lo",
        "tagged message by ucp_tag_send*(fast-completion) from host memory": "eager short on tcp/lo",
        "tagged message by ucp_tag_send*(multi) from host memory": "eager short on tcp/lo",
    }
    expected = {f"{kind}, {text}" for kind, small in kinds.items() for text in (f"1 to 8 bytes: {small}", large)}
    assert set(SEEN[PROTOCOLS]) == expected


def test_only_the_kind_of_endpoint_that_foretells_the_run_is_believed():
    # Without error handling ucx_info lists another transfer than the run made; with it, the same.
    assert choices(FORETOLD["t"], SPANS) != SEEN[PROTOCOLS]
    assert choices(FORETOLD["te"], SPANS) == SEEN[PROTOCOLS]


def protocols(answers=None, **unset):
    known = answers or (lambda features, variables: FORETOLD[features])
    return Protocols(known, SPANS, unset)


def test_a_choice_that_stays_is_no_effect_and_one_that_changes_is():
    told = protocols(lambda features, v: FORETOLD["te"] if v.get("UCX_RNDV_SCHEME") != "put_zcopy" else table("x"))
    assert told.alike({**TCP, "UCX_RNDV_SCHEME": "am"}, TCP, SEEN)
    assert not told.alike({**TCP, "UCX_RNDV_SCHEME": "put_zcopy"}, TCP, SEEN)


@pytest.mark.parametrize(
    ("one", "details", "why"),
    [
        ({**TCP, "UCX_TCP_SNDBUF": "2M"}, SEEN, "a buffer does more than to change the choice"),
        ({**TCP, "UCXPY_PROGRESS_MODE": "polling", "UCX_RNDV_SCHEME": "am"}, SEEN, "nor is that about the choice"),
        ({**TCP, "UCX_RNDV_SCHEME": "am"}, {}, "the run listed no protocols"),
        ({**TCP, "UCX_RNDV_SCHEME": "am"}, {PROTOCOLS: []}, "this UCX lists none"),
        ({**TCP, "UCX_RNDV_SCHEME": "am"}, {PROTOCOLS: ["another"]}, "ucx_info does not predict what the run did"),
    ],
)
def test_what_is_not_known_is_not_said_to_be_alike(one, details, why):
    assert not protocols().alike(one, TCP, details), why


def test_ucx_info_is_asked_once_and_with_what_the_benchmark_sets():
    asked = []

    def answer(features, variables):
        asked.append((features, dict(variables)))
        return FORETOLD["te"]

    told = protocols(answer, UCX_RNDV_THRESH="8192")
    for _ in range(3):
        assert told.alike({**TCP, "UCX_RNDV_SCHEME": "am"}, TCP, SEEN)
    assert asked == [
        ("t", {"UCX_TLS": "tcp", "UCX_RNDV_THRESH": "8192"}),
        ("t", {"UCX_TLS": "tcp", "UCX_RNDV_THRESH": "8192", "UCX_RNDV_SCHEME": "am"}),
    ]


def test_sizes_that_are_not_sent_do_not_count():
    assert choices(table("short", "8K"), [(1, 8)]) == choices(table("short", "64K"), [(1, 8)])
    assert choices(table("short", "8K"), [(1, 16_000)]) != choices(table("short", "64K"), [(1, 16_000)])


@given(st.text())
def test_any_text_is_read(text):
    assert isinstance(choices(text, SPANS), list)


@given(st.lists(st.tuples(st.integers(1, 2**20), st.integers(0, 2**20)), max_size=4), st.integers(1, 2**24))
def test_what_is_listed_lies_within_the_sizes_asked_for(spans, threshold):
    asked = [(low, low + more) for low, more in spans]
    for line in choices(table("short", str(threshold)), asked):
        low, high = (int(word) for word in line.split(", ")[1].split(" bytes")[0].split(" to "))
        assert any(first <= low <= high <= last for first, last in asked)
