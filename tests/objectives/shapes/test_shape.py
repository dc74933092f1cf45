import numpy as np
import pytest

from objectives.shapes.scaling import strong_scaling
from objectives.shapes.shape import Shape, Term
from spaces.expressions.quantities import column_of


def columns(**values):
    return {name: column_of(column) for name, column in values.items()}


def test_terms_are_shares_of_what_expressions_compute():
    shape = Shape((Term("work", "cells / np", 2.0), Term("tree", "log2(np)")))
    terms = shape.term_values(columns(np=[1, 4, 8], cells=[80, 80, 80]))
    assert {name: column.tolist() for name, column in terms.items()} == {"work": [160, 40, 20], "tree": [0, 2, 3]}


def test_terms_may_name_derived_values():
    shape = Shape((Term("work", "1 / cores_used"),), derived={"cores_used": "np * per_rank", "per_rank": "2 * threads"})
    assert shape.term_values(columns(np=[1, 4], threads=[1, 2]))["work"].tolist() == [0.5, 0.0625]


def test_a_term_is_unknown_where_a_value_is_missing_and_left_out_where_it_always_is():
    shape = Shape((Term("work", "1 / np"), Term("wire", "bytes / bandwidth")))
    terms = shape.term_values(columns(np=[1, None], bytes=[5, 5]))
    assert set(terms) == {"work"}
    assert np.array_equal(terms["work"], [1.0, np.nan], equal_nan=True)


def test_what_is_unset_can_be_asked_for():
    shape = Shape((Term("work", "1 / (np if is_set(np) else 2)"),))
    assert shape.term_values(columns(np=[None, None], other=[1, 2]))["work"].tolist() == [0.5, 0.5]
    assert shape.term_values(columns(other=[1, 2]))["work"].tolist() == [0.5, 0.5]


@pytest.fixture
def scaled():
    def terms(ranks="np", per_rank=None, /, **values):
        return strong_scaling(ranks, per_rank).term_values(columns(**values))

    return terms


def test_computing_is_divided_and_messages_grow(scaled):
    terms = scaled(np=[1, 2, 8], cores_per_node=[4, 4, 4])
    assert terms["computing"].tolist() == [1.0, 0.5, 0.125]
    assert np.ptp(terms["serial part"]) == 0.0
    for name in ("collective messages", "messages", "surfaces between ranks"):
        assert terms[name][0] == 0.0, name
        assert (terms[name][1:] > 0.0).all(), name
    assert terms["further nodes"].tolist() == [0.0, 0.0, pytest.approx(2e-5)]
    assert terms["memory of the nodes"][2] == pytest.approx(terms["memory of the nodes"][0] / 2)


def test_an_unset_count_is_one(scaled):
    assert scaled("np", "omp", np=[2, 2], omp=[None, 4])["computing"].tolist() == [0.5, 0.125]


def test_without_facts_of_a_machine_it_is_one_node(scaled):
    assert scaled(np=[2, 64])["further nodes"].tolist() == [0.0, 0.0]


def test_ranks_may_be_an_expression_of_parameters(scaled):
    assert scaled("px * py", px=[1, 2], py=[3, 4])["computing"].tolist() == pytest.approx([1 / 3, 1 / 8])


def test_threads_alone_have_no_messages(scaled):
    terms = scaled(None, "threads", threads=[1, 4])
    assert terms["computing"].tolist() == [1.0, 0.25]
    assert not {"messages", "collective messages"} & set(terms)


@pytest.mark.parametrize("cores", [4, 48, 192])
def test_before_any_measurement_more_cores_are_better_and_at_last_messages_are_too_many(scaled, cores):
    counts = [2**k for k in range(14)]
    total = sum(scaled(np=counts, cores_per_node=[48] * 14).values())
    best = counts[int(total.argmin())]
    assert 48 <= best <= 1024
    within = [place for place, count in enumerate(counts) if count <= cores]
    assert (np.diff(total[[place for place in within if counts[place] <= 48]]) < 0.0).all()


def test_nodes_are_as_few_as_have_the_cores_or_what_is_said():
    known = columns(np=[8, 8], n=[3, 1], cores_per_node=[4, 4])
    assert strong_scaling("np", None).term_values(known)["further nodes"].tolist() == [2e-5, 2e-5]
    assert strong_scaling("np", None, "n").term_values(known)["further nodes"].tolist() == [4e-5, 0.0]
