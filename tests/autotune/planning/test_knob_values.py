"""Values to try in a command: `./solve --threads {threads=1..8}`."""

import subprocess
import tomllib

import pytest

from autotune.errors import StudyFileError
from autotune.planning.command_line import propose_knobs
from autotune.planning.knob_values import expanded_note, parse_values
from autotune.planning.study_template import has_values, study_text
from autotune.studyfile import parse


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("threads=1,2,4", [1, 2, 4]),
        ("level=fast,slow,010", ["fast", "slow", "010"]),
        ("n=3..6", [3, 4, 5, 6]),
        ("block=64..1000*2", [64, 128, 256, 512]),
        ("n=0..100+50", [0, 50, 100]),
    ],
)
def test_values_are_a_list_or_a_range(text, values):
    assert parse_values(text) == (text.partition("=")[0], values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("threads", "is not NAME=VALUE"),
        ("2=1,2", "is not NAME=VALUE"),
        ("n=1", "has 1 different values"),
        ("n=1,1", "has 1 different values"),
        ("n=1..1000", "1000 different values; give 2 to 100"),
        ("n=8..1", "8 is above 1"),
        ("n=0..8*2", "never ends"),
        ("n=1..8+0", "never ends"),
    ],
)
def test_other_texts_are_refused_with_the_rule(text, said):
    with pytest.raises(StudyFileError, match=said):
        parse_values(text)


def study_of(*words):
    return parse({"name": "mine", **tomllib.loads(study_text(words, {}))}, "the test")


def test_only_the_values_of_the_command_are_tried_under_the_names_in_it():
    words = ["solve", "-n", "500", "--threads", "{t=1,2}", "--mode", "{mode=fast,slow}", "-O{level=3..1000*3}", "2.5"]
    study = study_of(*words)
    argv = ["solve", "-n", "500", "--threads", "{t}", "--mode", "{mode}", "-O{level}", "2.5"]
    assert study.options["argv"] == argv
    assert study.options["threads"] == "t"
    parameters = study.model_dump()["space"]["parameters"]
    assert {name: one["values"] for name, one in parameters.items()} == {
        "t": [1, 2],
        "mode": ["fast", "slow"],
        "level": [3, 9, 27, 81, 243, 729],
    }
    assert has_values(words)
    assert not has_values(["solve", "-n", "500"])


def test_ranks_that_the_command_fixes_stay():
    study = study_of("mpirun", "-np", "4", "solve", "--block", "{block=8,4}")
    assert study.options["ranks"] == "np"
    assert study.model_dump()["space"]["parameters"]["np"]["values"] == [4]


@pytest.mark.parametrize(
    "words",
    [
        ["awk", "{s+=$1} END{print s}", "data"],
        ["awk", "{s=$1*2; print s, $2}", "data"],
        ["python", "-c", "print(f'{x=}')"],
        ["solve", "{a=1}", '{"b=2": 3, "c": 4}'],
    ],
)
def test_other_braces_are_left_alone(words):
    assert not has_values(words)
    assert [word.format() for word in study_of(*words).options["argv"]] == words


@pytest.mark.parametrize(
    "written",
    [
        "{level=0,1}",
        "--threads {t=1,2,4} -x",
        "gzip -{level=1,6} -c",
        "-O{level=1,3} f",
        "in{n=1,2}.dat",
        "--a={b=0.5,1.5}",
    ],
)
def test_values_that_a_shell_has_expanded_are_recognised(written):
    made = subprocess.run(["bash", "-c", f"printf '%s\\n' {written}"], capture_output=True, text=True, check=True)
    (braces,) = [word for word in written.split() if "{" in word]
    words = ["solve", *made.stdout.splitlines()]
    note = f"perhaps your shell has expanded {braces}; put single quotes around it: '{braces}'"
    assert expanded_note(words) == note
    assert note in propose_knobs(words, {}).notes


@pytest.mark.parametrize("words", ["tar --level=1 --level=2", "solve a=1 b=2 a=3", "make CC=gcc all", "solve n=1 -2"])
def test_other_words_with_an_equals_sign_are_left_alone(words):
    assert expanded_note(words.split()) == ""


def test_a_number_of_the_command_is_no_knob_of_its_values():
    study = study_of("mpirun", "-np", "4", "solve", "987654000", "-k", "{np=1,2}")
    assert study.options["argv"] == ["solve", "987654000", "-k", "{np}"]
    parameters = study.model_dump()["space"]["parameters"]
    assert {name: one["values"] for name, one in parameters.items()} == {"np": [1, 2], "np_2": [4]}
