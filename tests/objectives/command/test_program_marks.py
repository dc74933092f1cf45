"""A program is recognised by what it runs, whatever its study is called."""

import pytest

from objectives.program_marks import program_marks

SOLVE, OTHER = "solve sha256:aa", "solve sha256:bb"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"command": "./solve 3", "program": SOLVE}, {"command": "./solve 4", "program": SOLVE}, True),
        ({"command": "./solve 3", "program": SOLVE}, {"command": "./solve 3", "program": OTHER}, False),
        # A program that was compiled again, and one that was moved.
        ({"command": "/a/solve 3", "program": SOLVE}, {"command": "/a/solve 3", "program": OTHER}, True),
        ({"command": "/a/solve 3", "program": SOLVE}, {"command": "/b/solve 3", "program": SOLVE}, True),
        # An interpreter, or a command that starts another one, does not show what runs.
        ({"command": "python a.py", "program": "python3.11 sha256:cc"}, {"command": "python b.py"}, False),
        ({"command": "/bin/bash -c a", "program": "bash sha256:d"}, {"command": "/bin/bash -c b"}, False),
        ({"command": "numactl -l a", "program": "numactl sha256:d"}, {"command": "x", "program": "x sha256:d"}, False),
        (
            {"command": "python /a/t.py", "program": "python sha256:c", "script": "t.py sha256:e"},
            {"command": "python3 /b/t.py --x", "program": "python3 sha256:d", "script": "t.py sha256:e"},
            True,
        ),
        # As a training script has them.
        (
            {"command": "a", "program": "python sha256:c, t.py sha256:e"},
            {"command": "t", "script": "t.py sha256:e"},
            True,
        ),
        ({"command": "python -m a"}, {"command": "python -m a"}, True),
        ({}, {}, False),
    ],
)
def test_two_programs_are_the_same(one, other, same):
    assert bool({*program_marks(one)} & {*program_marks(other)}) is same
