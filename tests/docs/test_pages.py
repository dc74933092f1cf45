"""Every command of every page runs, or is exempt for one of a few reasons."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.docs.page import PAGES, REASONS, Page
from tests.docs.player import Player, files, shortened
from tests.docs.test_clusters import CANCEL, DRY, PILOT
from tests.docs.test_docs import COMMANDS, FRONT, README_RUN, SERVE
from tests.docs.test_other_pages import IMPORT_COMMANDS, MACHINE_COMMANDS, PREDICTIONS

pytestmark = [pytest.mark.slow, pytest.mark.cores(1)]

_FIRST = {*README_RUN, *(f"autotune {words}" for words in (*COMMANDS, *DRY, *PILOT, CANCEL, SERVE))}
ELSEWHERE = {
    **dict.fromkeys(FRONT, _FIRST),
    "docs/clusters.md": {f"autotune {words}" for words in (*DRY, *PILOT, CANCEL)},
    "docs/import.md": {f"autotune {words}" for words in IMPORT_COMMANDS},
    "docs/machines.md": {f"autotune {words}" for words in MACHINE_COMMANDS},
    "docs/prediction.md": {f"autotune {words}" for words in PREDICTIONS},
}
"""Pages with tests of their own, and the commands that those run. All others are played."""

PLAYED = sorted(name for name in PAGES if name not in ELSEWHERE and Page.read(name).is_played)


def recordings(player: Player) -> None:
    """Make what a reader of the page on replays has: a study of recorded runs, a cache, its space, a table."""
    study = ["autotune", "study", "replay", "--trials", "5", "--name", "qe"]
    for storage in ("autotune.db", "results.db"):
        player.run([*study, "--storage", storage])
    entry = {"x": 1, "time": 2.0}
    other = {"x": 2, "time": 1.0}
    cache = {"device_name": "A100", "kernel_name": "k", "tune_params_keys": ["x"], "cache": {"1": entry, "2": other}}
    (player.folder / "A100.json").write_text(json.dumps(cache), encoding="utf-8")
    player.run(["gzip", "A100.json"])
    study = 'objective = "replay"\n[options]\ntable = "A100.json.gz"\n'
    (player.folder / "cache.toml").write_text(study, encoding="utf-8")
    space = json.loads(player.run(["autotune", "space", "./cache.toml", "--json"]))
    (player.folder / "space.json").write_text(json.dumps(space["space"]), encoding="utf-8")
    (player.folder / "runs.csv").write_text("np,npool,wall_s\n2,1,3.1\n2,2,2.5\n1,1,2.9\n", encoding="utf-8")


PREPARED = {"docs/replay.md": recordings}
"""What a page takes for granted."""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Return a function that plays a page, once, after the page that it goes on from; it returns the player."""
    known: dict[str, Player] = {}

    def play(name: str) -> Player:
        if name not in known:
            page = Page.read(name)
            folder = Path(tmp_path_factory.mktemp("page"))
            if page.after is not None:
                shutil.copytree(play(page.after).folder, folder, dirs_exist_ok=True, symlinks=True)
            player = Player(folder)
            PREPARED.get(name, lambda _: None)(player)
            player.play(page)
            known[name] = player
        return known[name]

    return play


@pytest.mark.timeout(1200)  # of a whole page, beside other work
@pytest.mark.parametrize("name", PLAYED)
def test_the_commands_of_a_page_run(played, name):
    missing = Page.read(name).missing
    if missing:
        pytest.skip(f"this machine has no {', '.join(missing)}")
    assert played(name).said


@pytest.mark.timeout(1200)  # of a whole page, beside other work
def test_the_tutorial_ends_with_a_script_that_runs(played):
    said = played("docs/tutorial.md").said
    assert "verdict: " in said["autotune best squeeze"]
    assert "#SBATCH --nodes=1" in said["autotune best squeeze --script slurm"]
    assert "KiB = 0." in said["./press.sh"]


@pytest.mark.timeout(1200)  # of a whole page, beside other work
def test_a_study_of_two_builds_ends_with_a_script_that_runs_one_of_them(played):
    said = played("docs/how-to/software.md").said
    assert "sum 1.2581737000e+07" in said["./smooth.sh"]
    sizes = said["autotune sweep builds --over block,software --values 16,4096 --repeats 6"].splitlines()
    assert [line.split(":")[0] for line in sizes if line.startswith("at ")] == ["at block=16", "at block=4096"]


@pytest.mark.timeout(1200)  # of a whole page, beside other work
def test_the_guide_to_ones_own_program_reads_a_figure_and_an_answer(played):
    said = played("docs/own-program.md").said["autotune check ./table.toml --run"]
    assert "work: 163 steps" in said
    assert "sum: 55" in said


@pytest.mark.timeout(1200)  # of a whole page, beside other work
def test_what_the_page_on_the_service_asks_for_is_answered(played):
    said = played("docs/service.md").said
    names = {study["name"] for study in json.loads(said["curl localhost:8642/studies"])}
    assert {"squeeze", "monday"} <= names
    follow = "curl -N --max-time 2 localhost:8642/studies/squeeze/events"
    assert "event: study\n" in said[follow]


@pytest.mark.timeout(1200)  # of a whole page, beside other work
def test_what_the_page_on_ask_and_tell_asks_for_is_answered(played):
    said = played("docs/ask-tell.md").said
    asked = json.loads(next(text for words, text in said.items() if "/ask " in words))
    example = json.loads(next(one for one in Page.read("docs/ask-tell.md").blocks if one.language == "json").text)
    assert set(asked) == set(example)
    assert "verdict: " in said["autotune best mine"]


@pytest.mark.parametrize("name", sorted(PAGES))
def test_what_does_not_run_says_why(name):
    for command in Page.read(name).commands:
        assert command.exempt is None or command.exempt in REASONS, f"{name}:{command.place}: {command.exempt}"


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_pages_with_tests_of_their_own_run_all_their_commands(name):
    told = {command.words for command in Page.read(name).commands if not command.exempt}
    assert told <= ELSEWHERE[name]


@pytest.mark.parametrize("name", sorted(PAGES))
def test_no_command_hides_in_what_looks_like_output(name):
    for block in Page.read(name).blocks:
        hidden = [line for line in block.lines if line.startswith(("autotune ", "./run "))]
        assert block.is_shell or block.language == "text" or not hidden, f"{name}:{block.place}: {hidden}"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_toml_and_json_can_be_read(name):
    for block in Page.read(name).blocks:
        if block.exempt:
            continue
        reader = {"toml": tomllib.loads, "json": json.loads}.get(block.language)
        if reader is not None:
            reader(block.text)


def test_a_page_goes_on_from_one_that_leaves_something():
    for name in PAGES:
        page = Page.read(name)
        assert page.after is None or (page.after in PLAYED and files(Page.read(page.after)))


def test_a_page_is_read_as_it_is_written():
    page = Page(
        "docs/x.md",
        """<!-- after: tutorial.md -->
```toml file=a.toml
x = 1
```

```sh file=bin/b
nothing-of-this-is-a-command
```

    X=1 autotune study a.toml \\
        --trials 3     # a remark
    autotune space a.toml --check "x=2"   # exit code 1: not valid

    trial 0: 1 s

<!-- not run: needs root -->
```sh
systemctl start slurmd
```

- a point
    with a line that is no code
""",
    )
    assert page.after == "docs/tutorial.md"
    assert [block.attributes for block in files(page)] == [{"file": "a.toml"}, {"file": "bin/b"}]
    assert page.missing == []
    assert [(one.words, one.exit_code, one.exempt) for one in page.commands] == [
        ("X=1 autotune study a.toml --trials 3", 0, None),
        ('autotune space a.toml --check "x=2"', 1, None),
        ("systemctl start slurmd", 0, "needs root"),
    ]


def test_fewer_trials_are_run_and_more_stay_more():
    assert "--trials 5 " in f"{shortened('autotune study qe --trials 12')} "
    assert "--trials 6 " in f"{shortened('autotune study qe --trials 20')} "
    assert shortened("autotune study qe --trials 50 --dry-run") == "autotune study qe --trials 50 --dry-run"
    assert "--set verdict.pairs=3 " in shortened("cd there && autotune study qe --trials 12")
    assert shortened("autotune replay a.db --seeds 50") == "autotune replay a.db --seeds 2"
    assert shortened("autotune ablate qe") == "autotune ablate qe"
    assert shortened("autotune confirm qe --max-pairs 10") == "autotune confirm qe --max-pairs 5"
    assert shortened("autotune sweep qe --over np") == "autotune sweep qe --repeats 3 --over np"
    assert shortened("autotune sweep qe --over np --repeats 1") == "autotune sweep qe --over np --repeats 1"
    assert " --set budget.trials=8 " in f"{shortened('autotune study qe')} "
    assert "budget.trials" not in shortened("autotune study qe --trials 12")
