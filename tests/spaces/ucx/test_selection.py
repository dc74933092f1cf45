import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaces import Space, SpaceError
from spaces.ucx.config import Variable, lanes, parse
from spaces.ucx.selection import select, unknown_names
from spaces.ucx.transports import combinations
from spaces.ucx.values import size_bytes, values_of

SIZE = 'memory units: <number>[b|kb|mb|gb], "inf", or "auto"'
EXCERPT = f"""\
# UCX library configuration file
# Uncomment to modify values

#
# tcp transport configuration
#

#
# Bytes copied per send. Larger is not always faster.
#
# syntax:    {SIZE}
#
UCX_TCP_TX_SEG_SIZE=8K

#
# Bytes copied per receive
#
# syntax:    {SIZE}
#
UCX_TCP_RX_SEG_SIZE=64K

#
# Socket send buffer size
#
# syntax:    {SIZE}
#
UCX_TCP_SNDBUF=auto

#
# Network interfaces by address family
#
# syntax:    comma-separated list of: string
#
UCX_TCP_AF_PRIO=inet,inet6

#
# Ports to use
#
# syntax:    numbers range: <number>-<number>
#
UCX_TCP_PORT_RANGE=0

#
# How network failures are reported
#
# syntax:    [FATAL|ERROR|WARN|DIAG]
#
UCX_TCP_FAILURE=DIAG

#
# Elements of the receive queue.
#
# syntax:    unsigned integer
# inherits:  UCX_MM_FIFO_SIZE
#
UCX_POSIX_FIFO_SIZE=64

#
# Size of the buffers
#
# syntax:    {SIZE}
# inherits:  UCX_MM_SEG_SIZE
#
UCX_POSIX_SEG_SIZE=8256

#
# Transports to use:
#  - all : every one
#
# syntax:    comma-separated list (use "all" for including all items or '^' for negation) of: string
#
UCX_TLS=all

#
# Eager up to here
#  intra     - within a node
# {""}
#
# syntax:    comma-separated list of value or key:value pairs, where key is one of [intra,inter] and value is: {SIZE}. \
A value without a key is the default.
#
UCX_RNDV_THRESH=intra:auto,inter:auto

#
# Scheme of a rendezvous.
#
# syntax:    [auto|get_zcopy|put_zcopy|get_ppln|put_ppln|am|rkey_ptr]
#
UCX_RNDV_SCHEME=auto

#
# For alike machines
#
# syntax:    <y|n>
#
UCX_UNIFIED_MODE=n

#
# Devices to use
#
# syntax:    comma-separated list of: string
#
UCX_NET_DEVICES=all

#
# Direct access to memory of GPUs
#
# syntax:    <yes|no|try>
#
UCX_IB_GPU_DIRECT_RDMA=try

#
# Tag matching
#
# syntax:    <y|n>
# inherits:  UCX_RC_TM_ENABLE
#
UCX_RC_MLX5_TM_ENABLE=n

#
# From here on
#
# syntax:    {SIZE}
#
UCX_TM_THRESH=1K
"""
HERE = ("self", "tcp", "sysv", "posix", "cma")
CLUSTER = ("self", "tcp", "posix", "cma", "rc_mlx5", "dc_mlx5", "cuda_copy")
VARIABLES = parse(EXCERPT)


def named(selection):
    return {parameter.name: parameter for parameter in selection.parameters}


def space_of(selection):
    return Space(selection.parameters, selection.constraints, {})


def guess(syntax, default, name="UCX_X"):
    return values_of(Variable(name, syntax, default, ""))


def test_variables_are_read_with_their_syntax_default_description_and_aliases():
    assert len(VARIABLES) == 16
    by_name = {variable.name: variable for variable in VARIABLES}
    assert by_name["UCX_TCP_TX_SEG_SIZE"] == Variable("UCX_TCP_TX_SEG_SIZE", SIZE, "8K", "Bytes copied per send.")
    assert by_name["UCX_POSIX_FIFO_SIZE"].inherits == ("UCX_MM_FIFO_SIZE",)
    assert by_name["UCX_TLS"].help == "Transports to use:"
    assert by_name["UCX_RNDV_THRESH"].help == "Eager up to here"


def test_what_is_not_a_variable_is_passed_over():
    noise = "[17.5] [vm:1:0] parser.c:1 UCX  ERROR Invalid value for X\nUCX_OLD (deprecated)\n# UCX_COMMENTED=1\n\0\n"
    assert parse(noise + EXCERPT + noise) == VARIABLES
    assert parse("UCX_BARE=3") == (Variable("UCX_BARE", "", "3", ""),)
    assert parse(EXCERPT + EXCERPT) == VARIABLES


def test_the_transports_that_carry_data_are_those_with_a_lane_in_use():
    text = """\
#               peer: intra
#                 lane[0]:  3:sysv/memory.0 md[2]           -> md[2]/sysv/sysdev[255] am am_bw#0
#                 lane[1]:  4:posix/memory.0 md[3]          -> md[3]/posix/sysdev[255]
#                 lane[2]:  5:cma/memory.0 md[4]            -> md[4]/cma/sysdev[255] seg 4294967295 rma_bw#0
#                 lane[3]:  6:tcp/eth0.0 md[1]              -> md[1]/tcp/sysdev[255] wireup
"""
    assert lanes(text) == {"sysv", "cma"}
    assert lanes("") == set()


@given(st.integers(0, len(EXCERPT)), st.integers(0, len(EXCERPT)), st.text(max_size=40))
def test_cut_and_damaged_texts_are_read_as_far_as_they_go(first, last, garbage):
    for text in (EXCERPT[:first], EXCERPT[first:], EXCERPT[:first] + garbage + EXCERPT[last:]):
        selection = select(parse(text), HERE)
        assert space_of(selection).default() == {}


@given(st.text(), st.text(max_size=60), st.sampled_from(["UCX_X", "UCX_TCP_SNDBUF", "UCX_RNDV_THRESH"]))
def test_any_syntax_and_default_give_values_or_none(syntax, default, name):
    parse(syntax)
    for kind in (
        syntax,
        SIZE,
        "unsigned integer",
        "floating point number",
        "time value: x",
        f"[{syntax}]",
        f"<{syntax}>",
    ):
        values = guess(kind, default, name)
        assert default not in values
        assert len(set(values)) == len(values)


@pytest.mark.parametrize(
    ("syntax", "default", "values"),
    [
        ("<y|n>", "n", ("y",)),
        ("<yes|no|try>", "try", ("y", "n")),
        ("<yes|no|try|auto>", "auto", ("y", "n", "try")),
        ("<on|off|auto>", "auto", ("on", "off")),
        ("[none|weak|auto]", "auto", ("none", "weak")),
        ("[none|weak|aut", "none", ("weak",)),
        (SIZE, "8K", ("512", "2K", "32K", "128K")),
        (SIZE, "8256", ("512", "2K", "32K", "128K")),
        (SIZE, "64", ("256", "1K")),
        (SIZE, "inf", ()),
        ("unsigned integer", "16", ("4", "8", "32", "64")),
        ("unsigned integer", "1", ("2", "4")),
        ("unsigned integer", "0", ()),
        ("integer", "-1", ()),
        ('unsigned long: <number>, "inf", or "auto"', "inf", ()),
        ("floating point number", "0.500", ("0.25", "0.75")),
        ("time value: <number>[s|us|ms|ns]", "1000.00us", ("250.00us", "4000.00us")),
        ('bandwidth value: <number>[T|G|M|K]B|b[[p|/]s] or "auto"', "auto", ()),
        ("comma-separated list of: [thp|md|heap]", "md,thp", ("thp,md",)),
        ("comma-separated list of: string", "host:512K,cuda:4M", ()),
        ("string", "/dev/shm", ()),
    ],
)
def test_values_follow_from_syntax_and_default(syntax, default, values):
    assert guess(syntax, default) == values


def test_thresholds_have_a_ladder_whether_by_key_or_not():
    ladder = ("1K", "4K", "16K", "64K", "256K", "1M", "inf")
    assert guess(SIZE, "auto", "UCX_RNDV_THRESH") == ladder
    assert guess(SIZE, "inf", "UCX_RNDV_THRESH_FALLBACK") == ladder[:-1]
    keyed = next(variable for variable in VARIABLES if variable.name == "UCX_RNDV_THRESH")
    assert values_of(keyed) == ladder
    assert guess(keyed.syntax, "intra:1K,inter:auto", "UCX_RNDV_THRESH") == ()


def test_values_that_are_known_to_hang_are_not_proposed():
    for name in ("UCX_TCP_SNDBUF", "UCX_TCP_RCVBUF", "UCX_TCP_CM_SNDBUF"):
        assert min(size_bytes(value) for value in guess(SIZE, "auto", name)) >= 128 * 2**10
    for name in ("UCX_POSIX_SEG_SIZE", "UCX_SYSV_SEG_SIZE"):
        assert max(size_bytes(value) for value in guess(SIZE, "8256", name)) < 64 * 2**10


def test_what_is_left_out_says_why():
    left_out = select(VARIABLES, HERE).left_out
    assert "no such transport" in left_out["UCX_RC_MLX5_TM_ENABLE"]
    assert "no such transport" in left_out["UCX_IB_GPU_DIRECT_RDMA"]
    assert "does not know it" in left_out["UCX_USE_MT_MUTEX"]
    assert "does not know it" in left_out["UCX_DC_MLX5_TM_ENABLE"]
    assert "UCX_NET_DEVICES" not in left_out


def test_hardware_that_is_there_is_tuned():
    found = named(select(VARIABLES, CLUSTER, gpu=True))
    assert found["UCX_RC_MLX5_TM_ENABLE"].values == ("y",)
    assert found["UCX_IB_GPU_DIRECT_RDMA"].values == ("y", "n")
    assert "get_ppln" in found["UCX_RNDV_SCHEME"].values
    without = select(VARIABLES, CLUSTER)
    assert named(without)["UCX_RNDV_SCHEME"].values == ("get_zcopy", "put_zcopy", "am", "rkey_ptr")
    assert "GPU" in without.left_out["UCX_IB_GPU_DIRECT_RDMA"]
    assert "rkey_ptr" not in named(select(VARIABLES, ["self", "tcp"]))["UCX_RNDV_SCHEME"].values


def test_the_transports_that_are_offered_connect_two_processes():
    assert set(combinations(HERE, gpu=False, nodes=1)) == {"tcp", "posix", "posix,cma", "sysv", "sysv,cma"}
    assert set(combinations(CLUSTER, gpu=True, nodes=2)) == {
        *("rc_x,cuda_copy", "rc_x,posix,cuda_copy", "rc_x,posix,cma,cuda_copy"),
        *("dc_x,cuda_copy", "dc_x,posix,cuda_copy", "dc_x,posix,cma,cuda_copy"),
        *("tcp,cuda_copy", "tcp,posix,cuda_copy", "tcp,posix,cma,cuda_copy"),
    }
    assert "UCX_TLS" not in named(select(VARIABLES, ["self", "cma"]))
    assert "UCX_TLS" not in named(select(VARIABLES[:2], HERE))


def test_what_ucx_chooses_itself_is_not_offered_twice():
    assert "sysv,cma" not in named(select(VARIABLES, HERE, automatic={"sysv", "cma"}))["UCX_TLS"].values
    only_way = select(VARIABLES, ["self", "tcp"], automatic={"tcp"})
    assert "UCX_TLS" not in named(only_way)
    assert "UCX_TCP_SNDBUF" in named(only_way)


@pytest.mark.parametrize("automatic", [None, {"sysv", "cma"}])
def test_settings_are_tuned_only_where_they_are_read(automatic):
    space = space_of(select(VARIABLES, HERE, automatic=automatic))
    assert space.contains({"UCX_TLS": "tcp", "UCX_TCP_TX_SEG_SIZE": "16K"})
    assert space.contains({"UCX_TLS": "posix,cma", "UCX_POSIX_FIFO_SIZE": "256"})
    (broken,) = space.violations({"UCX_TLS": "posix", "UCX_TCP_TX_SEG_SIZE": "16K"})
    assert "only tcp would read it" in broken
    unset = space.violations({"UCX_TCP_TX_SEG_SIZE": "16K"})
    assert bool(unset) is (automatic is not None)
    assert all("UCX itself chooses cma, sysv" in sentence for sentence in unset)


def test_unified_mode_conflicts_with_a_scheme_of_ones_own():
    space = space_of(select(VARIABLES, HERE))
    assert space.contains({"UCX_UNIFIED_MODE": "y"})
    assert space.contains({"UCX_RNDV_SCHEME": "am"})
    (broken,) = space.violations({"UCX_UNIFIED_MODE": "y", "UCX_RNDV_SCHEME": "am"})
    assert "contradicts" in broken


def test_a_receive_buffer_holds_what_is_sent():
    space = space_of(select(VARIABLES, HERE))
    assert space.contains({"UCX_TCP_TX_SEG_SIZE": "64K", "UCX_TCP_RX_SEG_SIZE": "512K"})
    assert space.contains({"UCX_TCP_TX_SEG_SIZE": "64K"})
    assert not space.contains({"UCX_TCP_TX_SEG_SIZE": "128K"})
    assert not space.contains({"UCX_TCP_TX_SEG_SIZE": "64K", "UCX_TCP_RX_SEG_SIZE": "32K"})
    small = parse(EXCERPT.replace("TX_SEG_SIZE=8K", "TX_SEG_SIZE=32K"))
    assert not space_of(select(small, HERE)).contains({"UCX_TCP_RX_SEG_SIZE": "16K"})


def test_a_threshold_of_tag_matching_needs_tag_matching():
    space = space_of(select(VARIABLES, CLUSTER))
    assert space.contains({"UCX_TM_THRESH": "4K", "UCX_RC_MLX5_TM_ENABLE": "y"})
    assert not space.contains({"UCX_TM_THRESH": "4K"})


def test_a_pattern_adds_what_it_names_and_says_what_it_does_not_add():
    assert "UCX_TCP_AF_PRIO" not in named(select(VARIABLES, HERE))
    selection = select(VARIABLES, HERE, patterns=["UCX_TCP_*", "UCX_RC_*"])
    assert named(selection)["UCX_TCP_AF_PRIO"].values == ("inet6,inet",)
    assert "cannot be guessed" in selection.left_out["UCX_TCP_PORT_RANGE"]
    assert "[space.parameters.UCX_TCP_PORT_RANGE]" in selection.left_out["UCX_TCP_PORT_RANGE"]
    assert "not about speed" in selection.left_out["UCX_TCP_FAILURE"]
    assert "UCX_TCP_FAILURE" in named(select(VARIABLES, HERE, patterns=["UCX_TCP_FAILURE"]))


def test_an_alias_stands_for_the_variables_that_it_sets():
    extra = parse(EXCERPT.replace("UCX_MM_SEG_SIZE", "UCX_MM_OTHER").replace("UCX_POSIX_SEG_SIZE", "UCX_POSIX_OTHER"))
    assert "UCX_POSIX_OTHER" in named(select(extra, HERE, patterns=["UCX_MM_OTHER"]))


def test_all_mistakes_in_patterns_are_reported_at_once():
    with pytest.raises(SpaceError) as caught:
        select(VARIABLES, HERE, patterns=["UCX_RNDV_TRESH", "UCX_FOO_*", "UCX_NET_DEVICES", "UCX_TCP_*"])
    first, second, third = (problem.message for problem in caught.value.problems)
    assert "UCX_RNDV_TRESH" in first
    assert "did you mean 'UCX_RNDV_THRESH'?" in first
    assert "UCX_FOO_*" in second
    assert "[space.parameters.UCX_NET_DEVICES]" in third


def test_misspelt_names_are_found_and_aliases_are_not():
    (sentence,) = unknown_names(["UCX_TLS", "UCX_RC_TM_ENABLE", "UCX_TSL"], VARIABLES)
    assert "UCX_TSL" in sentence
    assert "UCX_TLS" in sentence


@pytest.mark.slow
@given(
    st.sets(st.sampled_from([*HERE, *CLUSTER])),
    st.booleans(),
    st.sampled_from([1, 4]),
    st.none() | st.sets(st.sampled_from(HERE)),
)
def test_any_machine_gets_a_space_with_the_default_unset(transports, gpu, nodes, automatic):
    selection = select(VARIABLES, transports, patterns=["*"], gpu=gpu, nodes=nodes, automatic=automatic)
    defaults = {variable.name: variable.default for variable in VARIABLES}
    for parameter in selection.parameters:
        assert parameter.optional
        assert parameter.default is None
        assert defaults[parameter.name] not in parameter.values
    assert not named(selection).keys() & selection.left_out.keys()
    assert all(constraint.reason for constraint in selection.constraints)
    space = space_of(selection)
    assert space.default() == {}
    assert all(space.contains(configuration) for configuration in space.sample(np.random.default_rng(0), 20))
