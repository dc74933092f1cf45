"""No page has a mistake that can be found without running it. `test_played_pages.py` runs the commands of all pages."""

import json
import tomllib

import pytest

from tests.docs.front_pages import PLAYED, TESTED
from tests.docs.mistakes import OTHERS_OPTIONS, find_mistakes
from tests.docs.page import PAGES, REASONS, Page
from tests.docs.player import files


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_mistakes(name, tmp_path):
    assert find_mistakes(Page.read(name), tmp_path) == []


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("autotune stduy qe", "there is no command stduy (did you mean 'study'?)"),
        ("autotune study qe --trails 3", "No such option: --trails"),
        ("autotune study qe --trials some", "'some' is neither a number of trials"),
        ("autotune study qe more", "unexpected extra argument"),
        ("autotune study", "Missing argument"),
        ("autotune study qee", "there is no study qee (did you mean 'qe'?)"),
        ("autotune check ./theirs.toml", "there is no study ./theirs.toml"),
        ("autotune study ./a.toml --set budget.trails=3", "unknown key 'trails' in [budget]: did you mean 'trials'?"),
        ("autotune study ddp --set options.tune_hoks=true", "options.tune_hoks: there is no such option"),
        ("autotune replay qe --set options.matric=x", "--set options.matric: there is no such option"),
        ("autotune report qe --format markdown", "'markdown' is not one of 'html', 'md', 'json'"),
        ("autotune best squeeze", "the page has made no study squeeze"),
        ("autotune pilot qe --nodes 4 --walltime 4h --wokers 4", "No such option: --wokers"),
        ("cd there && X=1 autotune lisst | wc", "there is no command lisst"),
        ("nice -n 5 -- autotune lisst", "there is no command lisst"),
        ("./run test --fsat", "no such option: --fsat"),
    ],
)
def test_a_mistake_of_a_command_is_found(line, mistake, tmp_path):
    page = Page(
        "docs/x.md",
        f"""```toml file=a.toml
objective = "qe"

```

    autotune storage list
    {line}
""",
    )
    (found,) = find_mistakes(page, tmp_path)
    assert found.startswith("docs/x.md:7: ")
    assert mistake in found


@pytest.mark.parametrize(
    ("block", "mistake"),
    [
        (
            '```toml file=a.toml\nobjective = "command"\noptions.comand = ["true"]\n```',
            "unknown key 'comand' in [options]",
        ),
        ('```toml file=a.toml\nobjective = "qe"\nbudget.trails = 3\n```', "did you mean 'trials'?"),
        ("```toml\n[verdict]\npears = 3\n```", "did you mean 'pairs'?"),
        ("```toml file=a.toml\ndescripton = ''\n[references]\n```", "did you mean 'description'?"),
        ("```text\nautotune stduy qe\n```", "there is no command stduy"),
        ("With `--trails 3` it ends.", "no such option: --trails (did you mean '--trials'?)"),
        ("So does `autotune best qe --scrpt`.", "no such option: --scrpt"),
        ("So does `autotune stduy qe`.", "there is no command stduy"),
        ("So does `autotune study qee`.", "there is no study qee"),
        ("With `--set verdict.pears=3` it ends.", "did you mean 'pairs'?"),
    ],
)
def test_a_mistake_of_a_block_or_of_prose_is_found(block, mistake, tmp_path):
    found = find_mistakes(Page("docs/x.md", f"# Title\n\n{block}\n"), tmp_path)
    assert found
    assert all(one.startswith("docs/x.md:") for one in found)
    assert mistake in "".join(found)


def test_options_of_other_programs_are_named_somewhere():
    text = "".join(Page.read(name).text for name in PAGES)
    assert [option for option in OTHERS_OPTIONS if option not in text] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_command_that_is_not_played_gives_its_reason(name):
    for command in Page.read(name).commands:
        assert command.exempt is None or command.exempt in REASONS, f"{name}:{command.place}: {command.exempt}"


@pytest.mark.parametrize("name", TESTED)
def test_pages_with_tests_of_their_own_run_all_their_commands(name):
    told = {command.words for command in Page.read(name).commands if not command.exempt}
    assert told <= TESTED[name]


@pytest.mark.parametrize("name", PAGES)
def test_no_command_hides_in_output(name):
    for block in Page.read(name).blocks:
        hidden = [line for line in block.lines if line.startswith(("autotune ", "./run "))]
        assert block.is_shell or block.language == "text" or not hidden, f"{name}:{block.place}: {hidden}"


@pytest.mark.parametrize("name", PAGES)
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
