import shutil
from pathlib import Path

import pytest

from objectives import blas
from objectives.linked_libraries import find_linked_libraries
from tests.support.descriptors import none_left

LDD = """#!/bin/sh
echo "	linux-vdso.so.1 (0x00007f)"
case $1 in
*static*) echo "	not a dynamic executable" >&2; exit 1;;
*lib*) echo "	libgomp.so.1 => /lib/libgomp.so.1 (0x00007f)"; exit 0;;
esac
for folder in $(echo "$LD_LIBRARY_PATH" | tr : ' ') SYSTEM/blas; do
    if [ -e "$folder/libblas.so.3" ]; then
        echo "	libblas.so.3 => $folder/libblas.so.3 (0x00007f0123)"
        break
    fi
done
[ -e "$folder/broken" ] && echo "	libgfortran.so.3 => not found"
echo "	libc.so.6 => /lib/libc.so.6 (0x00007f)"
"""


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A system with a reference BLAS, OpenBLAS in two kinds, one that cannot be loaded, and an `ldd`."""
    for name in ("blas", "openblas-pthread", "openblas-serial", "broken-blis", "mystery"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "libblas.so.3").touch()
    (tmp_path / "broken-blis" / "broken").touch()
    (tmp_path / "python3").mkdir()
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "ldd").write_text(LDD.replace("SYSTEM", str(tmp_path)))
    (tools / "ldd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return tmp_path


def test_finds_what_can_be_loaded_instead_of_the_systems_own(system):
    found = {library.name: library.threaded for library in blas.find(Path("/bin/pw.x"), [system])}
    assert found == {"openblas-pthread": True, "openblas-serial": False, "mystery": True}


def test_the_systems_own_has_a_name(system):
    assert blas.system_blas(find_linked_libraries(Path("/bin/pw.x"))) == "reference"


def identity(system):
    program = Path("/bin/pw.x")
    return blas.identity(find_linked_libraries(program), blas.find(program, [system]))


def test_identity_tells_which_library_became_another_one(system):
    first = identity(system)
    assert first.keys() == {"blas", "blas mystery", "blas openblas-pthread", "blas openblas-serial"}
    assert first["blas"].startswith("reference ")
    (system / "openblas-serial" / "libblas.so.3").write_text("upgraded")
    second = identity(system)
    assert {key for key in first if first[key] != second[key]} == {"blas openblas-serial"}
    (system / "blas" / "libblas.so.3").write_text("upgraded")
    third = identity(system)
    assert {key for key in first if second[key] != third[key]} == {"blas"}
    assert identity(system) == third


def test_identity_sees_the_library_behind_a_thin_layer(tmp_path):
    libraries = {name: tmp_path / name for name in ("libblas.so.3", "libopenblas.so.0", "libscalapack.so.2")}
    for path in libraries.values():
        path.touch()
    first = blas.identity(libraries, ())
    libraries["libscalapack.so.2"].write_text("upgraded")
    assert blas.identity(libraries, ()) == first
    libraries["libopenblas.so.0"].write_text("upgraded")
    assert blas.identity(libraries, ()) != first


def test_identity_without_a_choice(tmp_path):
    assert blas.identity({}, ()) == {"blas": "linked"}
    (tmp_path / "libmkl_core.so.2").touch()
    found = blas.identity({"libmkl_core.so.2": tmp_path / "libmkl_core.so.2", "libc.so.6": None}, ())
    assert found["blas"].startswith("libmkl_core.so.2 ")


def test_a_static_program_has_no_choice(system):
    assert blas.find(Path("/bin/static-pw.x"), [system]) == ()


def test_no_ldd_no_choice(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_linked_libraries(Path("/bin/pw.x")) == {}


def test_a_program_that_cannot_be_asked_for_want_of_descriptors_is_not_one_without_libraries(system):
    del system
    with none_left(), pytest.raises(OSError, match="Too many open files"):
        find_linked_libraries(Path("/bin/pw.x"))


def test_a_program_whose_libraries_are_not_told_in_time_is_not_one_without(system, monkeypatch):
    del system
    monkeypatch.setattr("objectives.linked_libraries._TIMEOUT_S", 0.0)
    with pytest.raises(OSError, match="ldd did not answer within"):
        find_linked_libraries(Path("/bin/pw.x"))


def test_the_path_of_a_library_comes_before_what_modules_set(tmp_path):
    library = blas.Blas("b", tmp_path, threaded=False)
    assert library.library_path() == str(tmp_path)
    assert library.library_path("/opt/mpi/lib") == f"{tmp_path}:/opt/mpi/lib"


@pytest.mark.parametrize(
    ("libraries", "threads"),
    [
        ({"libblas.so.3": Path("/usr/lib/x/blas/libblas.so.3")}, False),
        ({"libblas.so.3": Path("/usr/lib/x/openblas-pthread/libblas.so.3")}, True),
        ({"libblas.so.3": Path("/usr/lib/x/openblas-serial/libblas.so.3")}, False),
        ({"libgomp.so.1": Path("/usr/lib/libgomp.so.1")}, True),
        ({"libmkl_rt.so.2": None}, True),
        ({"libmkl_sequential.so.2": None}, False),
        ({"libpthread.so.0": Path("/lib/libpthread.so.0")}, False),
        ({"libevent_pthreads-2.1.so.7": Path("/lib/libevent_pthreads-2.1.so.7")}, False),
    ],
)
def test_who_uses_threads(libraries, threads):
    assert blas.uses_threads(libraries) is threads


@pytest.mark.slow
def test_the_real_pw():
    program = shutil.which("pw.x")
    if program is None:
        pytest.skip("no pw.x here")
    libraries = find_linked_libraries(Path(program))
    if blas.system_blas(libraries) == "reference":
        assert not blas.uses_threads(libraries)
    names = [library.name for library in blas.find(Path(program))]
    assert blas.system_blas(find_linked_libraries(Path(program))) not in names
