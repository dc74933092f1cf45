"""The structure of the code: rooms have no import circles, and the tests mirror the rooms."""

import pytest

from tests.support.structure import ROOT, circles, modules, rooms


@pytest.mark.slow
def test_no_rooms_import_each_other_in_a_circle():
    assert not circles(rooms(modules()))


def test_two_rooms_that_import_each_other_are_a_circle():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {"a", "b", "c"}


def test_every_folder_of_tests_of_autotune_is_a_room():
    known = {path.name for path in (ROOT / "autotune").iterdir() if (path / "__init__.py").is_file()}
    tested = {path.name for path in (ROOT / "tests" / "autotune").iterdir() if (path / "__init__.py").is_file()}
    assert tested <= known
