import sys
from importlib.util import find_spec
from types import SimpleNamespace

import optuna
import pytest

from autotune.errors import CannotRunHereError, StudyFileError
from autotune.search.preview import preview
from autotune.search.registry import check_sampler, sampler_of
from autotune.search.suggest import ask
from autotune.studyfile import SamplerSection, parse
from spaces import Integer, Space
from tests.support.fakes import small_space

SPACE = small_space()
LARGE = Space([Integer.range(f"p{k}", 0, 99, default=0) for k in range(9)])

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def section(name, /, **options):
    return SamplerSection(name=name, options=options)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tpee", "did you mean 'tpe'"),
        ("autotun", "did you mean 'autotune'"),
        ("optuna", "optuna:CLASS"),
        ("optuna:", "optuna:CLASS"),
        ("optunahub:../x@1", "optunahub:PACKAGE@COMMIT"),
        ("optunahub:samplers/x", "which revision: write optunahub:PACKAGE@COMMIT"),
        ("optunahub:samplers/x@main", "optunahub:PACKAGE@COMMIT"),
    ],
)
def test_a_name_that_is_none_is_found_in_the_study_file(name, said):
    with pytest.raises(StudyFileError, match=said) as caught:
        parse({"name": "x", "objective": "command", "sampler": {"name": name}}, source="x.toml")
    assert "@ sampler.name" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (section("optuna:NSGAISampler"), "did you mean 'NSGAIISampler'.*@ sampler.name"),
        (section("optuna:GridSampler"), "sampler.name = 'exhaustive'"),
        (section("optuna:BaseSampler"), "no sampler 'BaseSampler'"),
        (section("optuna:PartialFixedSampler"), "needs an option 'fixed_params'"),
        (section("tpe", n_startup_trial=3), "did you mean 'n_startup_trials'.*@ sampler.options.n_startup_trial"),
        (section("tpe", n_startup_trials="many"), "must be int, got 'many' @ sampler.options.n_startup_trials"),
        (section("tpe", seed=3), "sampler.seed @ sampler.options.seed"),
        (section("tpe", gamma=0.1), "@ sampler.options.gamma"),
        (section("tpe", group=True, multivariate=False), "TPESampler refuses these options"),
        (section("optuna:NSGAIISampler", population_size=1), "NSGAIISampler refuses these options"),
        (section("random", n=1), "has no options, got n @ sampler.options"),
    ],
)
def test_mistakes_are_told_before_anything_is_run(settings, said):
    with pytest.raises(StudyFileError, match=said):
        check_sampler(settings)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(StudyFileError) as caught:
        check_sampler(section("tpe", n_ei_candidates=1.5, nonsense=1))
    assert "sampler.options.n_ei_candidates" in str(caught.value)
    assert "sampler.options.nonsense" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "package"), [("gp", "torch"), ("cmaes", "cmaes"), (f"optunahub:samplers/x@{COMMIT}", "optunahub")]
)
def test_a_package_that_is_missing_is_named_with_what_to_do(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda asked: None if asked == package else find_spec(asked))
    with pytest.raises(CannotRunHereError, match=f"pip install {package}"):
        check_sampler(section(name))


def test_options_reach_the_sampler():
    calm = section("optuna:NSGAIISampler", population_size=7)
    assert check_sampler(calm).build(1).population_size == 7


def hub(monkeypatch, module):
    def load_module(package, ref):
        if isinstance(module, Exception):
            raise module
        assert (package, ref) == ("samplers/own", COMMIT)
        return module

    monkeypatch.setitem(sys.modules, "optunahub", SimpleNamespace(load_module=load_module))
    monkeypatch.setattr("importlib.util.find_spec", lambda asked: asked)


class Own(optuna.samplers.RandomSampler):
    pass


class Another(optuna.samplers.RandomSampler):
    pass


def test_a_sampler_of_optunahub_is_loaded_by_its_package(monkeypatch):
    hub(monkeypatch, SimpleNamespace(Own=Own, TPESampler=optuna.samplers.TPESampler))
    study = optuna.create_study(sampler=sampler_of(SPACE, section(f"optunahub:samplers/own@{COMMIT}")))
    for number in range(5):
        trial = ask(study, SPACE)
        assert SPACE.contains(trial.params)
        study.tell(trial, float(number))
    assert isinstance(check_sampler(section(f"optunahub:samplers/own@{COMMIT}")).build(0), Own)


def test_of_several_in_a_package_one_is_named(monkeypatch):
    hub(monkeypatch, SimpleNamespace(Own=Own, Another=Another))
    assert isinstance(check_sampler(section(f"optunahub:samplers/own@{COMMIT}:Another")).build(0), Another)
    with pytest.raises(StudyFileError, match=r"Own, Another.*optunahub:samplers/own@\w+:CLASS"):
        check_sampler(section(f"optunahub:samplers/own@{COMMIT}"))


def test_a_package_that_cannot_be_fetched_says_why(monkeypatch):
    hub(monkeypatch, OSError("no route to host"))
    with pytest.raises(CannotRunHereError, match="no route to host; it is fetched from GitHub"):
        check_sampler(section(f"optunahub:samplers/own@{COMMIT}"))


@pytest.fixture
def module_of_user(tmp_path, monkeypatch):
    text = """
import optuna


class Drawn(optuna.samplers.RandomSampler):
    def __init__(self, width: float = 1.0, seed: int | None = None) -> None:
        super().__init__(seed=seed)
        self.width = width


class Abstract(optuna.samplers.BaseSampler):
    pass


number = 3
"""
    (tmp_path / "mysamplers.py").write_text(text)
    (tmp_path / "broken.py").write_text("import no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("mysamplers", None)


@pytest.mark.usefixtures("module_of_user")
def test_a_sampler_of_ones_own_searches_the_valid_set():
    settings = section("mysamplers:Drawn", width=0.5)
    assert check_sampler(settings).build(3).width == 0.5
    study = optuna.create_study(sampler=sampler_of(SPACE, settings))
    for number in range(5):
        trial = ask(study, SPACE)
        assert SPACE.contains(trial.params)
        study.tell(trial, float(number))


@pytest.mark.usefixtures("module_of_user")
@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        (section("mysamplers:Drwn"), StudyFileError, "no sampler 'Drwn'.*did you mean 'Drawn'.*@ sampler.name"),
        (section("mysamplers:number"), StudyFileError, "is no sampler: it must be a class derived.*Drawn @"),
        (section("mysamplers:Abstract"), StudyFileError, "with all abstract methods"),
        (section("mysamplers:Drawn", wdth=1.0), StudyFileError, "did you mean 'width'.*@ sampler.options.wdth"),
        (section("mysamplers:Drawn", width="wide"), StudyFileError, "must be .*float.*got 'wide'"),
        (section("mysamplers:Drawn", seed=1), StudyFileError, "sampler.seed @ sampler.options.seed"),
        (section("nowhere.at_all:Drawn"), CannotRunHereError, "'nowhere.at_all' cannot be imported.*PYTHONPATH"),
        (section("broken:Drawn"), CannotRunHereError, "No module named 'no_such_module'"),
        (section("optna:TPESampler"), CannotRunHereError, "did you mean 'optuna'"),
    ],
)
def test_mistakes_about_a_sampler_of_ones_own_are_told(settings, error, said):
    with pytest.raises(error, match=said):
        check_sampler(settings)


def test_exhaustive_refuses_a_space_that_cannot_be_listed():
    with pytest.raises(StudyFileError, match=r"too many to try every one.*@ sampler.name"):
        sampler_of(LARGE, section("exhaustive"))


@pytest.mark.parametrize(
    ("settings", "count", "whole"),
    [
        (SamplerSection(startup=3), 4, False),
        (SamplerSection(name="tpe", startup=3), 4, False),
        (SamplerSection(name="optuna:NSGAIISampler"), 1, False),
        (SamplerSection(name="random", startup=3), 20, True),
        (SamplerSection(name="exhaustive"), 20, True),
    ],
)
def test_a_preview_shows_what_does_not_depend_on_measurements(settings, count, whole):
    found = preview(SPACE, settings, 20)
    assert (len(found.proposals), found.whole) == (count, whole)
    study = optuna.create_study(sampler=sampler_of(SPACE, settings))
    for number, proposal in enumerate(found.proposals):
        trial = ask(study, SPACE)
        assert trial.params == proposal
        study.tell(trial, float(number))
