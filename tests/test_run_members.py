"""`./run suite NAME` gets what the studies of the suite need, by their names."""

import subprocess

from autotune.studyfile.suite import load_suite, suites
from tests.test_run_script import RUN, function


def members_of(*words):
    script = f'root={RUN.parent}\n{function("members_of")}\nmembers_of "$@"'
    done = subprocess.run(["sh", "-uc", script, "sh", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_studies_of_a_suite_that_ships_are_known_by_their_names():
    for name in suites():
        assert members_of("suite", name, "--trials", "3") == [member.study for member in load_suite(name).members]


def test_those_of_an_own_suite_file_are_known_and_no_other_words_of_it(tmp_path):
    own = tmp_path / "mine.toml"
    own.write_text('description = "no qe here"\n[suite]\nmembers = [\n    "hpl",\n    { study = "fftw" },\n]\n')
    assert members_of("suite", str(own)) == ["hpl", "fftw"]
    assert members_of("suite", "nothing", str(tmp_path / "nothing.toml")) == []
