"""What leaves the service: no path, and nothing that JSON cannot hold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.service.redact import known_folders, scrubbed, without_paths


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("mpirun -np 2 /usr/bin/pw.x -inp /home/jo/x/pw.in", "mpirun -np 2 …/pw.x -inp …/pw.in"),
        ("cannot read '/home/jo/mine.toml': gone", "cannot read '…/mine.toml': gone"),
        ("--file=/scratch/a/b.txt:12", "--file=…/b.txt:12"),
        ("in ~/secret/x", "in …/x"),
        ("file:///etc/passwd", "…/passwd"),
        ("core-s/run, 1/2 of it, s/m", "core-s/run, 1/2 of it, s/m"),
        ("see https://quantum-espresso.org/doc", "see https://quantum-espresso.org/doc"),
        ("/tmp is full", "/tmp is full"),
        ("PATH=/opt/a/bin:/home/jo/bin", "PATH=…/bin:…/bin"),
        ("#!/bin/bash\ncd /home/jo/x", "#!/bin/bash\ncd …/x"),
        ('run="${SLURM_SUBMIT_DIR:-$PWD}"/autotune-mine', 'run="${SLURM_SUBMIT_DIR:-$PWD}"/autotune-mine'),
        ("no study in sqlite:////home/jo/autotune.db", "no study in sqlite:///…/autotune.db"),
        ("sqlite:///autotune.db", "sqlite:///autotune.db"),
        ("mpicc -I/home/jo/include -O2", "mpicc -I…/include -O2"),
        ("a folder: /srv/runs/", "a folder: …/runs"),
        ("cannot open '/srv/my runs/x y/z 1.txt': gone", "cannot open '…/z 1.txt': gone"),
        ("'/usr/bin/pw.x -inp /home/jo/pw.in'", "'…/pw.x -inp …/pw.in'"),
        ("'/usr/bin/pw.x' and '/home/jo/pw.in'", "'…/pw.x' and '…/pw.in'"),
    ],
)
def test_of_a_path_only_its_end_is_told(given, expected):
    assert without_paths(given) == expected


def test_the_folders_that_are_known_are_found_whatever_they_are_called(tmp_path):
    for name in ("my thesis, draft 2", "a:b=c"):
        known_folders().add(tmp_path / name)
        text = without_paths(
            f"see {tmp_path / name}/runs/z.txt or {tmp_path / name}, or sqlite:///{tmp_path / name}/a.db"
        )
        assert "z.txt" in text
        for told in ("thesis", "a:b", str(tmp_path.name), "runs"):
            assert f"{told}/" not in text
        assert str(tmp_path) not in text


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)


@given(st.lists(words, min_size=2, max_size=6), st.sampled_from([" ", "'", '"', "=", "(", ""]))
def test_the_folders_of_a_path_are_never_told(parts, before):
    # Longer than any other word of the text, so that finding it is no accident.
    folders = [f"folder{part}" for part in parts[:-1]]
    text = without_paths(f"x{before or ' '}/{'/'.join(folders)}/{parts[-1]}")
    assert not any(f"{folder}/" in text for folder in folders)
    assert text.endswith(parts[-1])


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
)


@given(json_like)
def test_whatever_a_study_holds_can_be_sent(value):
    json.dumps(scrubbed(value), allow_nan=False)


def test_paths_are_removed_everywhere():
    value = {"/opt/a/b": [{"argv": ("/usr/bin/x", 1, None, float("nan"))}]}
    assert scrubbed(value) == {"…/b": [{"argv": ["…/x", 1, None, None]}]}
