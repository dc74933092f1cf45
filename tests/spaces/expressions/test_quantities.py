import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaces import Choice, Constraint, Integer, Space
from spaces.expressions.quantities import column_of, quantities

NUMBERS = st.one_of(st.none(), st.integers(0, 64))


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_they_are_what_python_computes_and_nothing_where_it_cannot(rows):
    columns = {"np": column_of([a for a, _ in rows]), "npool": column_of([b for _, b in rows])}
    found = quantities(["np // npool * 2 <= 64"], columns)
    for place, (ranks, pools) in enumerate(rows):
        expected = np.nan if ranks is None or pools is None or pools == 0 else ranks // pools
        if any(a is not None for a, _ in rows) and any(b is not None for _, b in rows):
            assert np.array_equal(found["np // npool"][place], expected, equal_nan=True)
            assert np.array_equal(found["np // npool * 2"][place], 2 * expected, equal_nan=True)


def test_facts_may_differ_from_row_to_row():
    columns = {"np": column_of([4, 8]), "cores": column_of([2, 8])}
    assert quantities(["np / cores < 9"], columns)["np / cores"].tolist() == [2.0, 1.0]


def test_rules_about_other_names_say_nothing():
    columns = {"np": column_of([4, 8]), "kind": column_of(["a", None])}
    assert quantities(["np * threads <= 8", "kind == 'a'", "np <= 8", "is_set(kind)"], columns) == {}


def test_words_and_numbers_meet():
    columns = {"np": column_of([4, 8]), "kind": column_of(["a", "b"])}
    found = quantities(["(np * 2 if kind == 'a' else np) < 10"], columns)
    assert found["np * 2 if kind == 'a' else np"].tolist() == [8.0, 8.0]


def test_the_columns_of_a_space_are_its_values():
    space = Space(
        [Integer("n", (1, 2, 4), default=1), Choice("kind", ("a", "b"), optional=True)], [Constraint("small", "n < 4")]
    )
    rows = space.all_indices()
    columns = space.columns(rows)
    told = [{"n": n, "kind": kind} for n, kind in zip(columns["n"].tolist(), columns["kind"].tolist(), strict=True)]
    assert [{name: v for name, v in one.items() if v is not None} for one in told] == space.decode(rows)


def test_what_is_neither_number_nor_nothing_makes_words_of_all():
    assert column_of([1, "two", None]).tolist() == ["1", "two", None]
    assert np.array_equal(column_of([True, None, 2.5]), [1.0, np.nan, 2.5], equal_nan=True)
