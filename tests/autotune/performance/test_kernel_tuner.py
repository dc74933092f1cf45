import gzip
import json

import pytest

from autotune.errors import ImportFileError
from autotune.performance.measurements.files import read_any

CACHE = {
    "device_name": "A100",
    "kernel_name": "gemm",
    "problem_size": [4096, 512],
    "tune_params_keys": ["block", "tile"],
    "cache": {
        "32,1": {"block": 32, "tile": 1, "time": 2.0, "times": [1.0, 2.0, 6.0], "compile_time": 100.0},
        "64,1": {"block": 64, "tile": 1, "time": 1.0, "times": [1.0], "compile_time": 100.0},
        "64,2": {"block": 64, "tile": 2, "time": "CompilationFailedConfig", "compile_time": 90.0},
    },
}
RESULTS = {
    "metadata": {"timeunit": "milliseconds"},
    "results": [
        {
            "configuration": {"block": 32},
            "objectives": ["time"],
            "times": {"compilation_time": 1, "runtimes": [2.0, 4.0, 3.0]},
            "invalidity": "correct",
            "correctness": 1,
            "measurements": [{"name": "time", "value": 3.0, "unit": "milliseconds"}],
        },
        {
            "configuration": {"block": 64},
            "objectives": ["time"],
            "times": {"compilation_time": 1, "runtimes": []},
            "invalidity": "runtime",
            "correctness": 0,
            "measurements": [],
        },
    ],
}


def place(machine, nodes):
    return machine, {"known": machine == "A100"}


def written(folder, document, name="cache.json"):
    path = folder / name
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


@pytest.mark.parametrize("name", ["cache.json", "cache.json.gz"])
def test_a_cache_of_kernel_tuner(tmp_path, name):
    found = read_any(written(tmp_path, CACHE, name), None, {}, place)
    setting = found.measured[0].setting
    assert setting.key == ("gemm", "A100", "4096 x 512", "time")
    assert (setting.metric.unit, setting.metric.kind) == ("s", "time")
    assert setting.workload_facts == {"problem_size_x": 4096, "problem_size_y": 512}
    assert setting.machine_facts == {"known": True}
    assert setting.source == str(tmp_path / name)
    assert [one.value for one in found.measured] == [0.002, 0.001, None]
    assert [one.runs for one in found.measured] == [3, 1, 1]
    assert dict(found.measured[2].configuration) == {"block": 64, "tile": 2}
    assert "CompilationFailedConfig" in found.measured[2].failure


def test_what_the_command_line_says_goes_before_what_the_file_says(tmp_path):
    given = {"machine": "mine", "program": "sgemm", "workload": "small", "source": "a paper"}
    setting = read_any(written(tmp_path, CACHE), None, given, place).measured[0].setting
    assert (*setting.key, setting.source) == ("sgemm", "mine", "small", "time", "a paper")


def test_t4_results_need_the_name_of_a_machine(tmp_path):
    path = written(tmp_path, RESULTS)
    with pytest.raises(ImportFileError, match="--machine NAME"):
        read_any(path, None, {}, place)
    found = read_any(path, None, {"machine": "A100", "program": "gemm"}, place)
    assert found.kind == "T4 results"
    assert [one.value for one in found.measured] == [0.003, None]
    assert found.measured[1].failed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "neither `cache`"),
        ('{"cache": {"a": 1}, "tune_params_keys": ["x"]}', "cannot be read"),
        ('{"results": [1]}', "form of its format|cannot be read"),
    ],
)
def test_a_file_of_another_form(tmp_path, text, words):
    path = tmp_path / "cache.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ImportFileError, match=words):
        read_any(path, None, {"machine": "x"}, place)


def test_a_broken_archive(tmp_path):
    path = tmp_path / "cache.json.gz"
    path.write_bytes(gzip.compress(b"{}" * 100)[:20])
    with pytest.raises(ImportFileError, match="no text, nor a compressed one"):
        read_any(path, None, {}, place)


def test_a_unit_that_published_files_spell_wrongly(tmp_path):
    misspelt = json.loads(json.dumps(RESULTS).replace("milliseconds", "miliseconds"))
    found = read_any(written(tmp_path, misspelt), None, {"machine": "A100"}, place)
    assert [one.value for one in found.measured if one.value is not None] == [0.003]
