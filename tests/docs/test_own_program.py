"""The guide to tuning your own program describes the shipped studies correctly."""

import re
import tomllib

from autotune import studyfile
from tests.docs.page import ROOT, Page

GUIDE = Page.read("docs/own-program.md").text


def test_the_guide_names_every_example_and_its_files_exist():
    for name in ("stream", "flags", "hpl", "pgbench", "redis", "gromacs", "lammps", "fftw"):
        assert f"| `{name}` |" in GUIDE
        text = studyfile.catalogue()[name].read_text(encoding="utf-8")
        assert text.startswith("#")
        for file in tomllib.loads(text)["options"].get("files", []):
            for path in [file.get("template"), file.get("copy"), *file.get("made_from", [])]:
                assert path is None or (ROOT / "studies" / path).is_file()


def test_the_readme_names_the_same_examples():
    (told,) = re.findall(r"worked examples: (.*?)\.", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert re.findall(r"`(\w+)`", told) == re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE)
