"""The catalogue of a service: one file that is wrong is told of, and hides no other."""

import pytest

from autotune.service.catalogue import Catalogue

GOOD = """
objective = "command"
[options]
argv = ["true", "{x}"]
[space.parameters.x]
type = "integer"
low = 1
high = 2
"""


@pytest.mark.parametrize(
    "wrong",
    [b'objective = "nonsense', b"x = " + b"[" * 50_000, b"\xff\xfe", b"budget.trials = 'x'\n", b"a" + b".a" * 500_000],
    ids=["no-toml", "nested", "no-text", "no-study", "dotted"],
)
def test_a_file_that_is_wrong_is_told_of_and_the_others_may_be_started(tmp_path, wrong):
    (tmp_path / "good.toml").write_text(GOOD)
    (tmp_path / "bad.toml").write_bytes(wrong)
    catalogue = Catalogue(tmp_path)
    assert [entry.name for entry in catalogue.entries()] == ["good"]
    (mistake,) = catalogue.check()
    assert "bad.toml" in mistake
    assert catalogue.find("bad") is None
    assert catalogue.find("good") is not None
