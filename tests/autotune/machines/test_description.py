"""Descriptions of machines: the shipped ones, the format of the file, and the messages about mistakes in it."""

import tomllib

import archspec.cpu
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.machines import description
from autotune.machines.catalogue import find_machine, machine_files
from autotune.machines.description import MachineDescription, MachineError, load, parse, sections
from autotune.machines.facts import fact_name
from autotune.machines.this_machine import this_machine
from autotune.tomlfiles.writing import to_toml
from spaces import Space, constraints_from_tables, parameters_from_tables

SHIPPED = {
    *("gadi", "gadi-gpuvolta", "gadi-dgxa100", "summit", "summit-dev", "titan", "claix2018", "hpcac", "iris", "aion"),
    "theta",
    *("nvidia-a100", "nvidia-a4000", "nvidia-a6000", "nvidia-h100", "nvidia-gh200"),
    *("amd-mi250", "amd-mi250x", "amd-mi300x", "amd-w6600", "amd-w7800"),
    *("intel-max-1550", "intel-gaudi2", "sambanova-sn40l"),
}


@pytest.fixture(autouse=True)
def _no_machines_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_what_ships():
    assert set(machine_files()) == SHIPPED


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_every_shipped_fact_has_a_source(name):
    machine = find_machine(name)
    assert machine.name == name
    assert machine.title
    assert [path for path in machine.given if not machine.source(path)] == []
    assert "measured" not in machine.sources, "figures that nobody here measured"


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_shipped_figures_are_of_the_right_size(name):
    """Catch a wrong power of ten, and figures of a socket instead of a node."""
    machine = find_machine(name)
    cpu, gpu = machine.cpu, machine.gpu
    assert cpu.microarchitecture is None or cpu.microarchitecture in archspec.cpu.TARGETS
    if cpu.microarchitecture:
        assert archspec.cpu.TARGETS[cpu.microarchitecture].family.name == cpu.architecture
    if cpu.flops and cpu.frequency_hz and cpu.cores_per_node and cpu.vector_bits:
        # A core has two fused units of this width. Some Skylakes report their peak at a lower frequency.
        most = cpu.cores_per_node * cpu.frequency_hz * 4 * cpu.vector_bits / 64
        assert 0.8 * most < cpu.flops < 1.01 * most
    if machine.memory.bandwidth_bytes_per_s and cpu.sockets:
        assert 4e10 < machine.memory.bandwidth_bytes_per_s / cpu.sockets < 3e11
    if gpu.l2_bytes and gpu.memory_bytes:
        assert gpu.l2_bytes < gpu.memory_bytes
    if gpu.flops_fp16:
        assert 1e14 < gpu.flops_fp16 < 2e15
    if gpu.memory_bytes and gpu.bandwidth_bytes_per_s:
        assert gpu.memory_bytes % 2**30 == 0
        assert 2e11 < gpu.bandwidth_bytes_per_s < 6e12


def test_gadi_has_the_peak_that_its_operator_publishes():
    facts = find_machine("gadi").for_nodes(4)
    assert (facts["nodes"], facts["cores"], facts["cores_per_node"]) == (4, 192, 48)
    assert facts["cpu_flops"] == 4.915e12
    assert facts["memory_bytes"] == 192 * 2**30
    assert facts["gpus_per_node"] == 0
    assert find_machine("gadi-gpuvolta").facts["gpus_per_node"] == 4


def test_no_more_nodes_than_there_are():
    with pytest.raises(MachineError, match="has 54 nodes; ask for 1 or more, got 55"):
        find_machine("summit-dev").for_nodes(55)
    with pytest.raises(MachineError, match="got 0"):
        find_machine("nvidia-a100").for_nodes(0)


def test_facts_that_a_space_names_mean_the_same():
    machine = this_machine()
    described = find_machine("this").facts
    assert machine.facts.items() <= described.items()


def test_every_fact_can_be_named_in_a_space():
    facts = find_machine("summit").facts
    parameters = parameters_from_tables({"x": {"type": "integer", "low": 1, "high": 100}}, facts)
    for name in (name for name, value in facts.items() if not isinstance(value, str)):
        rules = constraints_from_tables([{"name": "some", "rule": f"x <= {name}", "reason": "as said"}])
        assert Space(list(parameters), list(rules), facts).size.value == min(100, facts[name]), name


def test_flat_names_are_unique():
    names = [fact_name(f"{section}.{key}") for section, model in sections().items() for key in model.model_fields]
    given_names = [name for name in names if name]
    assert len(set(given_names)) == len(given_names)
    assert not {"nodes", "cores"} & set(given_names)


def test_all_errors_at_once_each_with_its_place():
    table = {
        "name": "two words",
        "cpu": {"cores_per_nod": 4, "sockets": 0, "frequency_hz": float("inf")},
        "memory": {"bytes": 1.5},
        "gpuu": {},
        "sources": {"cpu.socketz": "a page"},
    }
    with pytest.raises(MachineError) as error:
        parse(table, "mine.toml")
    text = str(error.value)
    assert text.startswith("mine.toml: 7 errors")
    assert "unknown key 'cores_per_nod' in [cpu]: did you mean 'cores_per_node'?" in text
    assert "unknown key 'gpuu': did you mean 'gpu'?" in text
    assert "no such fact here (did you mean 'cpu.sockets'?)" in text
    for place in (
        "name",
        "cpu.sockets",
        "cpu.frequency_hz",
        "memory.bytes",
        "sources.cpu.socketz",
    ):
        assert f"@ {place}\n" in f"{text}\n", place


@pytest.mark.parametrize(
    ("text", "said"),
    [("name = ", "is not a TOML file"), ("name = 3", "must be a text, got 3 @ name"), ("cpu = 1", "@ cpu")],
)
def test_a_file_with_a_mistake(tmp_path, text, said):
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(MachineError, match=said):
        load(tmp_path / "mine.toml")


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(MachineError, match=r"cannot read the machine file .*missing.toml: No such file"):
        find_machine(str(tmp_path / "missing.toml"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(MachineError, match="Is a directory"):
        find_machine(str(tmp_path / "folder.toml"))
    (tmp_path / "latin.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(MachineError, match="is not a TOML file"):
        find_machine(str(tmp_path / "latin.toml"))


def test_a_name_with_a_typo():
    with pytest.raises(MachineError, match=r"no machine is called 'gady' \(did you mean 'gadi'\?\)"):
        find_machine("gady")


def test_a_machine_of_the_user_wins(tmp_path):
    folder = tmp_path / "config" / "autotune" / "machines"
    folder.mkdir(parents=True)
    (folder / "gadi.toml").write_text("[cpu]\ncores_per_node = 3\n", encoding="utf-8")
    assert machine_files()["gadi"] == folder / "gadi.toml"
    assert find_machine("gadi").facts["cores"] == 3
    assert find_machine("gadi").name == "gadi"


def _model(section: str) -> st.SearchStrategy[dict[str, object]]:
    positive = st.floats(min_value=1e-12, max_value=1e300, allow_nan=False)
    by_type = {
        "int": st.integers(1, 2**62),
        "float": positive,
        "str": st.text(min_size=1),
        "dict": st.dictionaries(st.text(), positive, max_size=3),
        "list": st.lists(st.text(min_size=1), max_size=3),
    }
    fields = sections()[section].model_fields
    chosen = {}
    for name, field in fields.items():
        kind = next(word for word in ("dict", "list", "int", "float", "str") if word in str(field.annotation))
        chosen[name] = by_type[kind]
    return st.fixed_dictionaries({}, optional=chosen)


@given(st.fixed_dictionaries({}, optional={name: _model(name) for name in sections()}), st.text())
def test_what_is_written_is_read_as_it_was(tables, title):
    machine = MachineDescription.model_validate({"name": "mine", "title": title, **tables})
    again = description.parse(tomllib.loads(machine.to_toml()), "again")
    assert again == machine
    assert again.facts == machine.facts


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.booleans(), st.lists(st.integers(-5, 5)))))
def test_any_plain_table_can_be_written(table):
    assert tomllib.loads(to_toml(table)) == table
    assert tomllib.loads(to_toml({"a": 1, "b": {"c": {"d": 2}, "e": table}})) == {
        "a": 1,
        "b": {"c": {"d": 2}, "e": table},
    }
