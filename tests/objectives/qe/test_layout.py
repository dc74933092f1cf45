from objectives import registry

FACTS = {"kpoints": 20, "fft_dense_z": 96, "fft_smooth_z": 72, "cores_per_node": 48}


def layout(facts=FACTS, **chosen):
    return registry.layout("qe", chosen, facts)


def test_each_level_says_how_it_divides_the_problem():
    assert layout(np=1200, npool=20, ndiag=16) == (
        "20 k-points over 20 pools: 1 each",
        "72 planes of the FFT grid over 60 ranks of a pool: 2 each at most, 60% of the time is used",
        "a pool has 60 cores, 1.25 nodes",
        "16 of 60 ranks solve the subspace problem",
    )


def test_what_is_not_known_is_not_told():
    assert layout({}, np=4, npool=2) == ()
    assert layout({"kpoints": 3}, np=4, npool=1) == ("3 k-points in one pool",)
    assert registry.layout("command", {"np": 4}, FACTS) == ()


def test_band_groups_have_the_planes():
    assert layout({"fft_dense_z": 30}, np=20, nbgrp=2) == (
        "30 planes of the FFT grid over 10 ranks of a band group: 3 each",
    )


def test_what_pw_x_chooses_itself_is_said():
    facts = {**FACTS, "bands": 115, "pw_version": "7.3.1"}
    assert layout(facts, np=1200, nbgrp=1)[:2] == (
        "pw.x chooses npool=20 ndiag=1 itself",
        "20 k-points over 20 pools: 1 each",
    )
    assert "chooses" not in " ".join(layout({**facts, "pw_version": "7.0"}, np=1200))
