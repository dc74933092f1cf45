"""The shipped measurements equal the published figures and name their source."""

import tomllib

import pytest

from autotune.performance.measurements.files import read_any
from autotune.performance.measurements.machine_names import find_description
from autotune.performance.measurements.shipped import load_shipped_measurements, shipped_files
from objectives.qe import objective as qe
from objectives.ucx import objective as ucx

GIB, MIB = 2**30, 2**20
COMBINATION = {
    "UCX_RC_MLX5_TM_ENABLE": "y",
    "UCX_DC_MLX5_TM_ENABLE": "y",
    "UCX_USE_MT_MUTEX": "y",
    "UCXPY_NON_BLOCKING_MODE": "1",
    "UCX_RNDV_SCHEME": "am",
    "UCX_IB_GPU_DIRECT_RDMA": "y",
    "UCX_RNDV_THRESH": "1K",
    "UCX_TCP_TX_SEG_SIZE": "64K",
    "UCX_TCP_RX_SEG_SIZE": "512K",
}
COUNTS = {
    "gadi-dgxa100-ucx": 3,
    "gadi-dna": 10,
    "gadi-gpuvolta-ucx": 20,
    "gadi-qe": 41,
    "summit-data-science": 37,
    "summit-deep-learning": 11,
    "theta-qe": 19,
}


def value(program, place, workload, metric, **configuration):
    (found,) = [
        one
        for one in load_shipped_measurements()
        if one.setting.key[:2] == (program, place)
        and workload in one.setting.workload
        and one.setting.metric.name == metric
        and one.configuration == configuration
    ]
    return found.value


@pytest.mark.parametrize("path", shipped_files(), ids=lambda path: path.stem)
def test_a_file_is_whole_and_says_where_its_figures_come_from(path):
    found = read_any(path, None, {}, lambda machine, nodes: (machine, {"nodes": nodes}))
    assert len(found.measured) == COUNTS[path.stem]
    assert found.left_out == ()
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "slide" in (source := tomllib.loads(text)["source"]) or "https://" in source
    assert "eft out" in text


def test_all_files_are_looked_at():
    assert [path.stem for path in shipped_files()] == sorted(COUNTS)


def test_the_machines_are_described():
    assert {one.setting.machine for one in load_shipped_measurements()} == {
        *("gadi", "gadi-gpuvolta", "gadi-dgxa100"),
        *("summit", "summit-dev", "theta"),
    }
    assert all(find_description(one.setting.machine) is not None for one in load_shipped_measurements())


def test_metrics_are_those_of_the_objectives():
    known = {("qe", metric) for metric in qe.METRICS} | {("ucx", metric) for metric in ucx.MERGE_METRICS}
    assert {
        (one.setting.program, one.setting.metric)
        for one in load_shipped_measurements()
        if one.setting.program in {"qe", "ucx"}
    } <= known


def test_settings_have_one_metric_and_one_set_of_facts_each():
    of = {}
    for one in load_shipped_measurements():
        known = of.setdefault(one.setting.key, one.setting)
        assert known == one.setting


@pytest.mark.parametrize(
    ("place", "build", "metric", "chosen", "published"),
    [
        ("gadi", "module", "cpu_s", (48, 24, 4), 113.138),
        ("gadi", "module", "cpu_s", (40, 20, 1), 112.941),
        ("gadi", "Intel", "cpu_s", (48, 24, 1), 119.004),
        ("gadi", "Intel", "cpu_s", (40, 20, 4), 116.944),
        ("gadi", "module", "cpu_s", (40, 20, 4), 112.794),
        ("gadi", "module", "wall_s", (40, 20, 4), 118.50),
        ("gadi, 25 nodes", "module", "wall_s", (1200, 20, 16), 12.14),
        ("gadi, 25 nodes", "module", "cpu_s", (1200, 20, 16), 9.996),
        ("gadi, 30 nodes", "module", "cpu_s", (1440, 20, 9), 11.885),
        ("gadi, 20 nodes", "module", "iterations", (960, 20, None), 24),
    ],
)
def test_quantum_espresso_on_gadi(place, build, metric, chosen, published):
    np, npool, ndiag = chosen
    grid = {} if ndiag is None else {"ndiag": ndiag}
    assert value("qe", place, build, metric, np=np, npool=npool, threads=1, **grid) == published


def test_the_problem_on_gadi_and_the_routines_of_two_runs_are_known():
    known = [one for one in load_shipped_measurements() if (one.setting.program, one.setting.machine) == ("qe", "gadi")]
    sizes = {"kpoints": 20, "bands": 115, "atoms": 24, "fft_dense_x": 96, "planes": 72, "pw_version": "7.0"}
    assert all(sizes.items() <= one.setting.workload_facts.items() for one in known)
    told = {one.configuration["np"]: one.parts for one in known if one.parts}
    assert {np: (parts["h_psi"], parts["PWSCF"]) for np, parts in told.items()} == {
        40: (46.85, 118.5),
        1200: (1.65, 12.14),
    }


@pytest.mark.parametrize(
    ("layout", "published", "shared_s"),
    [
        ({"np": 16, "threads": 4, "ntg": 2, "ndiag": 16}, 316.78, 116.97),
        ({"np": 2, "threads": 32, "ntg": 1}, 964.57, 682.98),
    ],
)
def test_quantum_espresso_on_theta(layout, published, shared_s):
    chosen = {"npool": 1, **layout}
    (known,) = [
        one for one in load_shipped_measurements() if one.setting.machine == "theta" and one.configuration == chosen
    ]
    assert known.value == known.parts["PWSCF"] == published
    assert known.parts["cdiaghg"] == shared_s
    assert known.setting.workload_facts["scf_iterations"] == 2


def test_the_parts_of_a_run_are_not_more_than_the_whole():
    for one in load_shipped_measurements():
        whole = one.parts.get("PWSCF", 0.0)
        assert all(seconds <= whole for seconds in one.parts.values())
        inner = [one.parts.get(name, 0.0) for name in ("c_bands", "sum_band", "v_of_rho", "newd", "mix_rho")]
        # v_of_rho and newd are called once before the iterations, too.
        assert sum(inner) <= 1.01 * one.parts.get("electrons", whole)


@pytest.mark.parametrize(
    ("size", "metric", "configuration", "published"),
    [
        ("small", "bandwidth_bytes_per_s", {}, 507.21 * MIB),
        ("small", "throughput_bytes_per_s", {}, 4.27 * GIB),
        ("small", "throughput_bytes_per_s", {"UCX_RNDV_SCHEME": "am"}, 5.54 * GIB),
        ("small", "bandwidth_bytes_per_s", {"UCXPY_NON_BLOCKING_MODE": "1"}, 590.62 * MIB),
        ("small", "throughput_bytes_per_s", COMBINATION, 9.28 * GIB),
        ("large", "bandwidth_bytes_per_s", {}, 405.89 * MIB),
        ("large", "bandwidth_bytes_per_s", COMBINATION, 1.15 * GIB),
        ("large", "throughput_bytes_per_s", COMBINATION, 12.37 * GIB),
    ],
)
def test_ucx_on_volta_nodes(size, metric, configuration, published):
    assert value("ucx", "gadi-gpuvolta, 4 nodes", size, metric, **configuration) == pytest.approx(published)


def test_the_best_of_the_volta_nodes_loses_on_the_a100_nodes():
    place, metric = "gadi-dgxa100, 2 nodes", "throughput_bytes_per_s"
    assert value("ucx", place, "small", metric) == pytest.approx(16.66 * GIB)
    lost = value("ucx", place, "large", metric, **COMBINATION) / value("ucx", place, "large", metric)
    assert lost == pytest.approx(34.89 / 88.29)


def test_dna_on_both_gpus():
    chosen = {"batch_size": 64, "learning_rate": 0.01}
    assert value("dna", "gadi-gpuvolta", "DNA", "training_s", **chosen) == 3170.19
    assert value("dna", "gadi-dgxa100", "DNA", "training_s", **chosen) == 941.63
    assert value("dna", "gadi-gpuvolta", "DNA", "pr_auc", **chosen) == 0.5297
    assert value("dna", "gadi-dgxa100", "DNA", "loss", **chosen) == 7.3153e-4


# As they are printed: the time on Summit-Dev over that on Summit, by workload and by the settings of each.
RATIOS = [
    ("PCA", 8, {"smt": 1}, {"smt": 1}, 3.58),
    ("PCA", 8, {"smt": 8, "threads": 4, "ranks": 40}, {"smt": 4, "threads": 4, "ranks": 42}, 1.67),
    ("PCA", 64, {"smt": 4, "threads": 1, "ranks": 80}, {"smt": 2, "threads": 1, "ranks": 84}, 2.03),
    ("K-Means", 8, {"smt": 2, "threads": 2, "ranks": 20}, {"smt": 1}, 1.55),
    ("K-Means", 64, {"smt": 2, "threads": 1, "ranks": 40}, {"smt": 4, "threads": 4, "ranks": 42}, 1.85),
    ("SVM", 8, {"smt": 8, "threads": 2, "ranks": 80}, {"smt": 1}, 2.25),
]


@pytest.mark.parametrize(("benchmark", "size", "older", "newer", "printed"), RATIOS)
def test_the_times_on_summit_agree_with_the_ratios_that_are_printed(benchmark, size, older, newer, printed):
    workload = f"benchmark={benchmark}, input_gb={size}"
    before = value("data-science", "summit-dev", workload, "wall_s", **older)
    after = value("data-science", "summit", workload, "wall_s", **newer)
    assert before / after == pytest.approx(printed, abs=0.0051)


def test_threads_and_ranks_fill_the_hardware_threads_of_a_node():
    for one in load_shipped_measurements():
        if one.setting.program == "data-science" and "ranks" in one.configuration:
            cores = {"summit": 42, "summit-dev": 20}[one.setting.machine]
            chosen = one.configuration
            assert chosen["threads"] * chosen["ranks"] == cores * chosen["smt"]


@pytest.mark.parametrize(
    ("kernel", "digits", "printed"),
    [("WINOGRAD_NONFUSED", 1, 1.71), ("IMPLICIT_PRECOMP_GEMM", 1, 1.57), ("LSTM", 1, 1.45), ("GRU", 1, 1.58)],
)
def test_volta_and_pascal_agree_with_the_ratio_that_is_printed_within_the_rounding(kernel, digits, printed):
    older = value("deep-learning-kernels", "summit-dev", kernel, "wall_s", precision="fp16")
    newer = value("deep-learning-kernels", "summit", kernel, "wall_s", precision="fp16")
    half = 0.5 * 10**-digits
    assert (older - half) / newer - 0.005 <= printed <= (older + half) / newer + 0.005
