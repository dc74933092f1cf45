"""A recorded table of decisions: only what was recorded is tried, and cells that there are not do not count."""

from benchmarks.decisions import recorded, spend


def table(tmp_path):
    path = tmp_path / "table.csv"
    times = {"default": 2e-6, "ring": 1e-6, "tree": 3e-6}
    rows = [f"bcast,{size},{name},{time}" for size in (8, 64, 512) for name, time in times.items()]
    rows += [f"barrier,0,{name},{time}" for name, time in (("default", 1e-6), ("bruck", 2e-6))]
    path.write_text("\n".join(["collective,bytes,algorithm,latency_s", *rows]))
    over, defaults = ["collective", "bytes"], {"algorithm": "default", "bytes": "8"}
    return recorded(path, over, ["algorithm"], "latency_s", defaults)


def test_what_was_not_recorded_is_not_valid(tmp_path):
    read = table(tmp_path)
    assert {read.key(dict(one)) for one in read.space.configurations()} == set(read.true)


def test_every_run_is_of_a_recorded_cell_and_the_best_of_each_is_found(tmp_path):
    read = table(tmp_path)
    assert len(read.true) == 11
    found = spend(read, "ours", [11], seed=0)
    right, ratio, worst, fresh = found[11, "guess"]
    assert right == 1.0
    assert ratio == worst == 1.0
    assert fresh == 0
