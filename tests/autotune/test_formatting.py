"""How values of metrics are written, on the command line and in the page."""

import pytest

from autotune.formatting import count_failures, quantity
from objectives.base import Metric

QUANTITIES = (
    (3.027e8, "B/s", "302.7 MB/s"),
    (999_999, "B/s", "1 MB/s"),
    (9_876, "B/s", "9876 B/s"),
    (0.0002, "GB/s", "200 kB/s"),
    (123_456, "MB", "123.5 GB"),
    (1.2e9, "byte", "1.2 GB"),
    (23_456, "J", "23.46 kJ"),
    (0.1097, "s", "0.1097 s"),
    (0.00033, "s", "330 us"),
    (0.0005, "ms", "500 ns"),
    (1e-12, "s", "0.001 ns"),
    (12_345.6, "s", "12346 s"),
    (9_999.99, "ms", "10 s"),
    (0, "s", "0 s"),
    (-11_234.567, "eV", "-11235 eV"),
    (12_345, "1/s", "12345 1/s"),
    (0.91234, "", "0.9123"),
    (1234.5, "s", "1235 s"),
    (2.0625, "", "2.063"),
    (-12_344.5, "eV", "-12345 eV"),
    (12_345_678, "1/s", "1.235e+07 1/s"),
    (1e7, "s", "1e+07 s"),
    (0.00001234, "", "1.234e-05"),
)


@pytest.mark.parametrize(("value", "unit", "wanted"), QUANTITIES)
def test_a_quantity_has_four_digits_and_the_prefix_that_suits_it(value, unit, wanted):
    assert quantity(value, Metric("it", unit, "minimize")) == wanted


def test_kinds_of_failure_have_a_plural_where_they_are_nouns():
    counts = {"application error": 2, "invalid result": 1, "timed out": 3}
    assert count_failures(counts) == ["2 application errors", "1 invalid result", "3 timed out"]
