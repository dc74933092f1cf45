"""Prepare the files and studies that a page expects its reader to have."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from autotune.storage.measurement_store import MeasurementStore
from tests.docs.page import ROOT, Page
from tests.docs.player import Player


def play(name: str, folder: Path) -> Player:
    """Play a page in a folder, after what its reader has is there; return the player."""
    player = Player(folder)
    if name in PREPARED:
        PREPARED[name](player)
    player.play(Page.read(name))
    return player


def _make_recordings(player: Player) -> None:
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
    space = json.loads(player.run(["autotune", "check", "./cache.toml", "--space", "--json"]))
    (player.folder / "space.json").write_text(json.dumps(space["space"]), encoding="utf-8")
    (player.folder / "runs.csv").write_text("np,npool,wall_s\n2,1,3.1\n2,2,2.5\n1,1,2.9\n", encoding="utf-8")


def _make_imports(player: Player) -> None:
    """Make what a reader of the page on imports has: a table, a mapping for it and one of its own, a cache, outputs."""
    folder, page = player.folder, Page.read("docs/import.md")
    (example,) = (block.text for block in page.blocks if block.language == "toml")
    (folder / "mine.toml").write_text(example, encoding="utf-8")
    (folder / "runs.csv").write_text(
        "ranks,pools,nodes,minutes,at least,why,repeats,input,cutoff,h_psi,fftw\n"
        "4,2,1,1.5,,,5,CeO2,50,60,20\n8,2,1,,2,,1,CeO2,50,,\n",
        encoding="utf-8",
    )
    rows = re.sub(r"^(csv|nodes_column|failure|runs|bound|parts) .*\n", "", example, flags=re.MULTILINE)
    (folder / "rows.toml").write_text(
        f"{rows}\n[[rows]]\nranks = 4\npools = 2\nminutes = 1.0\ninput = 'CeO2'\ncutoff = 50\n", encoding="utf-8"
    )
    entry = {"x": 1, "time": 2.0}
    cache = {"device_name": "A100", "kernel_name": "k", "tune_params_keys": ["x"], "cache": {"1": entry}}
    (folder / "cache.json").write_text(json.dumps(cache), encoding="utf-8")
    shutil.copytree(ROOT / "tests" / "objectives" / "outputs", folder / "old-runs")


def _make_storage(player: Player) -> None:
    """Make what a reader of the page on predictions has: a storage."""
    MeasurementStore.create(f"sqlite:///{player.folder / 'autotune.db'}")


PREPARED: dict[str, Callable[[Player], None]] = {
    "docs/import.md": _make_imports,
    "docs/prediction.md": _make_storage,
    "docs/replay.md": _make_recordings,
}
