"""The shape of a study's run times: the terms in its file, or else what its objective knows."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from autotune.studyfile.model import ModelSection, StudyFile
from objectives import registry
from objectives.base import Plan
from objectives.shapes.shape import HARDWARE, UNKNOWN_WORK, Shape, Term
from spaces import Space
from spaces.expressions.evaluate import can_fail
from spaces.expressions.node import Node
from spaces.expressions.quantities import Columns, column_of
from spaces.expressions.text import clean
from spaces.mention import Mention
from spaces.parameters.errors import ExpressionError
from spaces.parameters.problem import Problem
from spaces.valid_set.valid_set import Indices

_SAMPLED = 200
_ROUNDING = 1e-6  # bounds of logarithms are no closer
# Standard deviations of logarithms: of terms in seconds, of all of these together, and of terms of unknown size.
_OF_SECONDS, _LEVEL_OF_SECONDS, _OF_TERMS = 0.7, 0.5, 2.0


def mentioned_terms(study: StudyFile) -> Iterator[Mention]:
    """Yield the mentions in the terms of a study file."""
    for index, text in enumerate(study.model.terms if study.model is not None else ()):
        yield Mention(text, f"model.terms.{index}")


def term_errors(study: StudyFile, space: Space) -> Iterator[Problem]:
    """Yield the errors in the terms of a study file, whose names are all those of the space or of `HARDWARE`."""
    named = HARDWARE.intersection(name for mention in mentioned_terms(study) for name in mention.names)
    if named:
        space = Space(space.parameters, space.constraints, {**dict.fromkeys(named, 1.0), **space.facts}, space.derived)
    for mention in mentioned_terms(study):
        wrong = _wrong(mention.text, space)
        if wrong is not None:
            yield Problem(wrong, mention.path)


def shape_of(study: StudyFile, plan: Plan, space: Space) -> Shape | None:
    """Return the shape that a study file gives, else that of its objective; None if neither has one.

    Before anything is measured, a term of unknown size counts as an equal part of a typical configuration's time.
    """
    # An objective that knows its costs needs no shape, because they say more.
    shape = plan.shape if registry.costs(study.objective) is None else None
    if study.model is not None:
        shape = _shape_by_names(study.model, space)
    inverse = plan.objective.metrics[0].direction == "maximize"
    return shape and replace(shape, derived=dict(space.derived), inverse=inverse)


def _shape_by_names(model: ModelSection, space: Space) -> Shape:
    texts = dict.fromkeys(map(clean, model.terms))
    if model.seconds:
        return Shape(tuple(Term(text, text, doubt=_OF_SECONDS) for text in texts), _LEVEL_OF_SECONDS)
    sizes = _typical_sizes(Shape(tuple(Term(text, text) for text in texts), derived=space.derived), space)
    terms = tuple(Term(text, text, 1.0 / (len(texts) * sizes.get(text, 1.0)), _OF_TERMS) for text in texts)
    return Shape(terms, UNKNOWN_WORK)


def _typical_sizes(shape: Shape, space: Space) -> dict[str, float]:
    """Return the geometric mean of each term over the sampled configurations where it is positive."""
    columns = shape.term_values(_columns(space, _sample(space)))
    positive = {name: column[column > 0.0] for name, column in columns.items()}
    return {name: float(np.exp(np.log(column).mean())) for name, column in positive.items() if len(column)}


def _sample(space: Space) -> Indices:
    return space.sample_indices(np.random.default_rng(0), _SAMPLED)


def _columns(space: Space, rows: Indices) -> Columns:
    facts = {name: np.repeat(column_of([value]), len(rows)) for name, value in space.facts.items()}
    return {**facts, **space.columns(rows)}


def _wrong(text: str, space: Space) -> str | None:
    try:
        node = space.expression(text)
    except ExpressionError as error:
        return str(error)
    if not node.is_number:
        return f"a term must be a number, {clean(text)} is a word"
    if can_fail(node):
        return (
            f"a term needs a value everywhere, and {clean(text)} may divide by zero or take the logarithm of 0: "
            "write ... if ... else ..."
        )
    if node.low < -_ROUNDING:
        least = "" if np.isinf(node.low) else f", as low as {node.low:g}"
        return f"a term is a part of a time, and {clean(text)} could be negative{least}: write max(0, ...)"
    return _unset(text, node, space)


def _unset(text: str, node: Node, space: Space) -> str | None:
    """Return an error if a term has no value in some configurations, because parameters are unset there."""
    names = [p.name for p in space.parameters if node.positions & {space.parameters.index(p)}]
    where = ""
    if not space.values_of({"": node}, space.default()):
        where = f"the default configuration, which leaves {', '.join(names)} unset"
    elif any(p.optional and p.name in names for p in space.parameters) and _lacks_values(text, space):
        names = [p.name for p in space.parameters if p.optional and p.name in names]
        where = f"configurations that leave {' or '.join(names)} unset"
    if not where:
        return None
    return (
        f"a term needs a value everywhere, and {clean(text)} has none in {where}: "
        f"write (... if is_set({names[0]}) else ...)"
    )


def _lacks_values(text: str, space: Space) -> bool:
    """Return whether a term has no value in one of the sampled configurations."""
    columns = Shape((Term(text, text),), derived=space.derived).term_values(_columns(space, _sample(space)))
    return text not in columns or bool(np.isnan(columns[text]).any())
