"""Every command of every page runs, or is exempt for one of a few reasons."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.docs.front_pages import PLAYED
from tests.docs.page import Page
from tests.docs.player import Player
from tests.docs.prepared import play as play_prepared

# The time is that of a whole page, beside other work.
pytestmark = [pytest.mark.full, pytest.mark.cores(1), pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Return a function that plays a page once, after the page that it continues, and returns the player."""
    known: dict[str, Player] = {}

    def play(name: str) -> Player:
        if name not in known:
            page = Page.read(name)
            folder = Path(tmp_path_factory.mktemp("page"))
            if page.after is not None:
                shutil.copytree(play(page.after).folder, folder, dirs_exist_ok=True, symlinks=True)
            known[name] = play_prepared(name, folder)
        return known[name]

    return play


@pytest.mark.parametrize("name", PLAYED)
def test_the_commands_of_a_page_run(played, name):
    missing = Page.read(name).missing
    if missing:
        pytest.skip(f"this machine has no {', '.join(missing)}")
    assert played(name).said


def test_the_tutorial_ends_with_a_script_that_runs(played):
    said = played("docs/tutorial.md").said
    assert "verdict: " in said["autotune best squeeze"]
    assert "#SBATCH --nodes=1" in said["autotune best squeeze --script slurm"]
    assert "KiB = 0." in said["./press.sh"]


def test_a_study_of_two_builds_ends_with_a_script_that_runs_one_of_them(played):
    said = played("docs/how-to/software.md").said
    assert "sum 1.2581737000e+07" in said["./smooth.sh"]
    sizes = said["autotune sweep builds --over block,software --values 16,4096 --repeats 6"].splitlines()
    assert [line.split(":")[0] for line in sizes if line.startswith("at ")] == ["at block=16", "at block=4096"]


def test_the_guide_to_ones_own_program_reads_a_figure_and_an_answer(played):
    said = played("docs/own-program.md").said["autotune check ./table.toml --run"]
    assert "work: 163 steps" in said
    assert "sum: 55" in said


def test_requests_on_the_page_about_the_service_are_answered(played):
    said = played("docs/service.md").said
    names = {study["name"] for study in json.loads(said["curl -H @$header 127.0.0.1:8642/studies"])}
    assert {"squeeze", "monday"} <= names
    follow = "curl -N --max-time 2 -H @$header 127.0.0.1:8642/studies/squeeze/events"
    assert "event: study\n" in said[follow]


def test_requests_on_the_page_about_ask_and_tell_are_answered(played):
    said = played("docs/ask-tell.md").said
    asked = json.loads(next(text for words, text in said.items() if "/ask " in words))
    example = json.loads(next(one for one in Page.read("docs/ask-tell.md").blocks if one.language == "json").text)
    assert set(asked) == set(example)
    assert "verdict: " in said["autotune best mine"]


def test_the_page_on_predictions_predicts(played):
    player = played("docs/prediction.md")
    assert json.loads(player.said["autotune predict qe --json"])["setting"]["program"] == "qe"
    assert "fitted on" in player.said["autotune predict qe"]
    assert "np=1200 npool=20" in player.said["autotune predict qe --facts ceria.toml --machine gadi --nodes 25"]
    two = player.said["autotune predict qe --facts ceria.toml --machine gadi --machine theta --nodes 25"]
    assert re.search(r"^gadi is \S+ times as fast as theta \(", two, re.MULTILINE)
    assert "data-science" in player.said["autotune model"]
    (python,) = (block.text for block in Page.read("docs/prediction.md").blocks if block.is_python)
    assert "'npool':" in player.said[python]
    assert "no measurement with less than 115 bands" in player.said[python]


def test_a_page_is_played_from_top_to_bottom(tmp_path):
    page = """```toml file=a.toml
objective = "qe"
```

    autotune check ./a.toml --static
    autotune check ./a.toml --static --set budget.trails=3   # exit code 2: did you mean 'trials'?
    mkdir there && cd there && autotune check ../a.toml --static | wc -l

```python
print(open("a.toml").read())
```
"""
    player = Player(tmp_path)
    player.play(Page("docs/x.md", page))
    right, wrong, count, text = player.said.values()
    assert "read; next: autotune study ./a.toml" in right
    assert (wrong, text) == ("", 'objective = "qe"\n\n')
    assert int(count) == len(right.splitlines())
    with pytest.raises(AssertionError, match=r"docs/x\.md:6: .*\nexit code 2"):
        player.play(Page("docs/x.md", page.replace("exit code 2", "no exit code")))
