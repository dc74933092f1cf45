"""A study file may choose what of UCX is tuned: some variables, some transports, a network device."""

import numpy as np
import pytest

from spaces import Space, SpaceError
from spaces.ucx.config import Variable
from spaces.ucx.selection import select
from spaces.ucx.transports import between_nodes, network_devices, tls_value

DEVICES = """\
# Memory domain: tcp
#      Transport: tcp
#         Device: eth0
#           Type: network
#      Transport: tcp
#         Device: lo
#           Type: network
#      Transport: sysv
#         Device: memory
#           Type: intra-node
#      Transport: rc_mlx5
#         Device: mlx5_0:1
#           Type: network
"""
SIZE = 'memory units: <number>[b|kb|mb|gb], "inf", or "auto"'
VARIABLES = (
    Variable("UCX_TLS", "comma-separated list of: string", "all", "transports"),
    Variable("UCX_NET_DEVICES", "comma-separated list of: string", "all", "devices"),
    Variable("UCX_RNDV_SCHEME", "[auto|get_zcopy|put_zcopy|am|rkey_ptr]", "auto", "scheme"),
    Variable("UCX_RNDV_THRESH", SIZE, "auto", "threshold"),
    Variable("UCX_TCP_SNDBUF", SIZE, "auto", "buffer"),
    Variable("UCX_TCP_PREFER_DEFAULT", "<y|n>", "y", "gateway"),
)
HERE = {"tcp", "sysv", "cma", "self", "rc_mlx5"}


def chosen(transports=HERE, **options):
    found = select(VARIABLES, transports, **options)
    return found, Space(found.parameters, found.constraints)


def names(found):
    return {parameter.name for parameter in found.parameters}


def test_devices_are_read_with_their_transports():
    found = network_devices(DEVICES)
    assert found == {"eth0": {"tcp"}, "lo": {"tcp"}, "mlx5_0:1": {"rc_mlx5"}}
    assert set(between_nodes(found)) == {"eth0", "mlx5_0:1"}


def test_a_device_goes_only_with_the_transports_that_it_has():
    _, space = chosen(devices=network_devices(DEVICES))
    assert space.contains({"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"})
    assert not space.contains({"UCX_TLS": "tcp", "UCX_NET_DEVICES": "mlx5_0:1"})
    assert space.contains({"UCX_TLS": "rc_x", "UCX_NET_DEVICES": "mlx5_0:1"})
    assert not space.contains({"UCX_TLS": "sysv,cma", "UCX_NET_DEVICES": "lo"})


def test_one_device_is_no_choice():
    found, _ = chosen(devices={"eth0": frozenset({"tcp"})})
    assert "UCX_NET_DEVICES" not in names(found)
    between, _ = chosen(devices={"eth0": frozenset({"tcp"}), "lo": frozenset({"tcp"})}, nodes=2)
    assert "UCX_NET_DEVICES" not in names(between)


def test_memory_is_read_in_place_only_where_it_is_shared():
    _, space = chosen(automatic={"sysv", "cma"})
    assert space.contains({"UCX_RNDV_SCHEME": "rkey_ptr"})
    assert space.contains({"UCX_TLS": "sysv", "UCX_RNDV_SCHEME": "rkey_ptr"})
    assert not space.contains({"UCX_TLS": "tcp", "UCX_RNDV_SCHEME": "rkey_ptr"})
    _, network = chosen(automatic={"rc_mlx5"})
    assert not network.contains({"UCX_RNDV_SCHEME": "rkey_ptr"})


def test_only_what_is_asked_for_is_tuned():
    found, space = chosen(only=["UCX_RNDV_*", "UCX_TCP_PREFER_DEFAULT"], automatic={"tcp"})
    assert names(found) == {"UCX_RNDV_SCHEME", "UCX_RNDV_THRESH", "UCX_TCP_PREFER_DEFAULT"}
    assert found.left_out["UCX_TCP_SNDBUF"] == "it was not asked for"
    assert all(space.contains(one) for one in space.sample(np.random.default_rng(0), 20))
    nothing, _ = chosen(only=[])
    assert names(nothing) == set()


def test_a_misspelt_name_that_is_asked_for_is_said():
    with pytest.raises(SpaceError, match="did you mean 'UCX_RNDV_THRESH'"):
        chosen(only=["UCX_RNDV_TRESH"])


def test_transports_are_named_as_ucx_wants_them():
    assert tls_value(["rc_mlx5", "sysv"]) == "rc_x,sysv"
