"""The house: few modules at the top, rooms of a size that one can survey, no circles, tests that mirror the rooms."""

import pytest

from benchmarks.structure import ROOT, circles, modules, rooms

MODULES = modules()
FOLDERS = sorted({path.parent for path in MODULES.values()})


def test_the_top_of_autotune_has_eight_modules_at_most():
    assert len(list((ROOT / "autotune").glob("*.py"))) <= 8


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_room_can_be_surveyed(folder):
    assert len(list(folder.glob("*.py"))) <= 23


def test_a_module_can_be_surveyed():
    assert not [name for name, path in MODULES.items() if len(path.read_text().splitlines()) > 400]


def test_no_rooms_import_each_other_in_a_circle():
    assert not circles(rooms(MODULES))


def test_every_folder_of_tests_of_autotune_is_a_room():
    known = {path.name for path in (ROOT / "autotune").iterdir() if (path / "__init__.py").is_file()}
    tested = {path.name for path in (ROOT / "tests" / "autotune").iterdir() if (path / "__init__.py").is_file()}
    assert tested <= known


def test_two_rooms_that_import_each_other_are_a_circle():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {"a", "b", "c"}
