"""The pages whose commands `test_played_front_pages.py` and `test_played_clusters.py` run, and not the player.

Their commands need another order, other options or another input than the player gives them.
"""

from tests.docs.page import PAGES, Page

FRONT = ("README.md", "docs/commands.md", "docs/quantum-espresso.md")
"""The pages that a newcomer reads first: the README, and the pages about the same study that it links."""
CLUSTERS = "docs/clusters.md"


def words_of(*names: str) -> list[str]:
    """Return the commands of pages, each once, those that are exempt among them."""
    return list(dict.fromkeys(command.words for name in names for command in Page.read(name).commands))


DRY = [words for words in words_of(*FRONT, CLUSTERS) if "--launcher" in words]
"""They submit jobs; the tests let them print the job scripts."""
PILOT = [words for words in words_of(*FRONT, CLUSTERS) if words.startswith("autotune pilot")]
CANCEL = "autotune cancel qe"
SERVE = "autotune serve"
"""It stays: docs/service.md is played with it."""
SET_UP = [words for words in words_of("README.md") if words.startswith("./run")]
"""They install what they need before they call autotune; CI itself is one of them."""
COMMANDS = [words for words in words_of(*FRONT) if words not in {*DRY, *PILOT, CANCEL, SERVE, *SET_UP}]
TESTED = {
    **{name: {*COMMANDS, *DRY, *PILOT, CANCEL, SERVE, *SET_UP} for name in FRONT},
    CLUSTERS: {*DRY, *PILOT, CANCEL},
}
"""These pages, and the commands that their tests run. All other pages are played."""
PLAYED = [name for name in PAGES if name not in TESTED and Page.read(name).is_played]
