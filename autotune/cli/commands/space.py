"""`autotune space`: the space of a study."""

from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import errors, output, print_json
from autotune.cli.options import AsJson, InputOption, SetOption, StudyArgument
from autotune.cli.study_request import choose, launched_by
from autotune.cli.where import CoresOption, LauncherOption, SiteOption, cluster_of, machine_and_launcher
from autotune.errors import StudyFileError
from autotune.formatting import with_derived, written
from autotune.held_folders import temporary_folder

if TYPE_CHECKING:
    from rich.table import Table

    from spaces import Configuration, Space


def space(
    name: StudyArgument,
    changes: SetOption = None,
    input_file: InputOption = None,
    cores: CoresOption = None,
    launcher: LauncherOption = None,
    site: SiteOption = None,
    sample: Annotated[int, typer.Option("--sample", min=0, help="Number of valid configurations to show.")] = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the sample.")] = 0,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="CONFIGURATION",
            help="Say why this configuration is not valid; the default fills in the rest: 'np=3 npool=2'.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a study's space, or check one configuration.

    The space has a size, parameters, constraints, a default, and a sample of valid configurations. Exit code 1: the
    configuration of --check is not valid.
    """
    import numpy as np

    from autotune.planning.prepare import prepare
    from launchers.local import local_launcher

    with temporary_folder("plan") as scratch:
        chosen = choose(name, changes, input_file, launched_by(launcher, site))
        machine, _, _ = machine_and_launcher(cluster_of(chosen), cores, chosen.name)
        prepared = prepare(chosen, machine, local_launcher(), scratch)
    built = prepared.space
    if check is not None:
        _check(built, check, as_json=as_json)
        return
    drawn = built.sample(np.random.default_rng(seed), sample) if sample else []
    size = built.size
    if as_json:
        print_json(
            {
                "size": size.value,
                "exact": size.exact,
                "combinations": built.raw_size,
                "sampling": built.sampling,
                "default": dict(built.default()),
                "derived": built.derived_values(built.default()),
                "sample": [dict(configuration) for configuration in drawn],
                "space": built.to_dict(),
            }
        )
        return
    for note in prepared.plan.notes:
        errors().print(note, markup=False)
    about = "" if size.exact else f"about (+-{size.relative_error:.0%}) "
    output().print(
        f"{about}{size.value} valid configurations of {built.raw_size} combinations; sampling: {built.sampling}",
        markup=False,
    )
    output().print(_parameters(built))
    output().print(_constraints(built))
    if built.derived:
        output().print(_derived(built))
    output().print(f"default: {with_derived(built, built.default())}", markup=False)
    for configuration in drawn:
        output().print(f"sample:  {with_derived(built, configuration)}", markup=False)


def _check(built: "Space", text: str, *, as_json: bool) -> None:
    violations = built.violations({**built.default(), **read_configuration(built, text)})
    if as_json:
        print_json({"valid": not violations, "violations": violations})
    else:
        for violation in violations or ["valid"]:
            output().print(violation, markup=False)
    if violations:
        raise typer.Exit(1)


def read_configuration(built: "Space", text: str) -> "Configuration":
    """Read `np=2 npool=1 blas=openblas`; values are read as the parameter's domain writes them.

    Raises:
        StudyFileError: a part is not `name=value`, or names no parameter.
    """
    from spaces.parameters.errors import did_you_mean

    domains = {parameter.name: parameter.values for parameter in built.parameters}
    configuration: dict[str, int | float | str | bool] = {}
    for part in text.replace(",", " ").split():
        key, equals, value = part.partition("=")
        if not equals:
            msg = f"--check: {part!r} is not name=value"
            raise StudyFileError(msg)
        if key not in domains:
            msg = f"--check: no parameter is called {key!r}{did_you_mean(key, domains)}; known: {', '.join(domains)}"
            raise StudyFileError(msg)
        known = {written(item): item for item in domains.get(key, ())}
        configuration[key] = known.get(value, _number(value))
    return configuration


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _parameters(built: "Space") -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table("parameter", "values", "default", "exists when", "what it is")
    for parameter in built.parameters:
        values = [written(value) for value in parameter.values]
        listed = ", ".join(values if len(values) <= 8 else [*values[:4], "...", values[-1]])
        if parameter.optional:
            listed = f"unset, {listed}"
        default = "" if parameter.default is None else written(parameter.default)
        table.add_row(*map(escape, (parameter.name, listed, default, parameter.when or "", parameter.help)))
    return table


def _derived(built: "Space") -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table("derived value", "expression")
    for name, expression in built.derived.items():
        table.add_row(escape(name), escape(expression))
    return table


def _constraints(built: "Space") -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table("constraint", "rule", "reason")
    for constraint in built.constraints:
        table.add_row(*map(escape, (constraint.name, constraint.rule, constraint.reason)))
    return table
