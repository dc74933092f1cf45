"""Numbers and units as programs print them."""

import pytest

from objectives.quantity import UnitError, read_quantity, to_number, whole_number
from objectives.units import conversion, other_scales


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12.0),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("1e5", 1e5),
        ("0.125D+02", 12.5),
        ("1.5d0", 1.5),
        ("0.1+103", 1e102),
        ("0.1-103", 1e-104),
        ("1,234.5", 1234.5),
        ("12,345,678", 12345678.0),
        ("1.2k", 1200.0),
        ("3M", 3e6),
        ("12,", 12.0),
    ],
)
def test_the_notations_of_a_number(text, value):
    assert to_number(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text", ["", "x", "nan", "inf", "1_000", "\uff11\uff12", "0,125", "1.2.3", "****", "1.5.", "100-200", "5s", "1:02"]
)
def test_what_is_no_number(text):
    assert to_number(text) is None


@pytest.mark.parametrize(
    ("text", "after", "unit", "value"),
    [
        ("950.40ms", "", "s", 0.9504),
        ("950.40", " ms", "s", 0.9504),
        ("950.40", " [ms]", "s", 0.9504),
        ("1.21", " s", "s", 1.21),
        ("7", "\t\N{MICRO SIGN}s", "ms", 0.007),
        ("1:02.35", "", "s", 62.35),
        ("1:02:03", "", "h", 3723 / 3600),
        ("1-02:03:04", "", "s", 93784.0),
        ("1h", " 2m", "s", 3720.0),
        ("2h50m12s", "", "s", 10212.0),
        ("0m1.52s", "", "s", 1.52),
        ("0:01.23", "elapsed 99%CPU", "s", 1.23),
        ("1", " day, 2:03:04", "s", 93784.0),
        ("2", " minutes and 3.5 seconds", "s", 123.5),
        ("2", "h 5m WALL", "s", 7500.0),
        ("45", " min", "s", 2700.0),
        ("812.50", " MiB/s", "GiB/s", 812.5 / 1024),
        ("1.5", "GB/s", "MB/s", 1500.0),
        ("10", " Gbits/sec", "GB/s", 1.25),
        ("91.4", " katom-step/s", "atom-step/s", 91400.0),
        ("91.4", " Matom-step/s", "katom-step/s", 91400.0),
        ("91.4", " katom-step/s", "1/s", 91400.0),
        ("3", " TFLOPS", "GFlop/s", 3000.0),
        ("1.20", "s/it", "it/s", 1 / 1.2),
        ("1.2k", " it/s", "it/s", 1200.0),
        ("512M", "", "GiB", 0.5),
        # A word that is no unit of what is declared is part of the text.
        ("12", " in all", "s", 12.0),
        ("3", " GB", "s", 3.0),
        ("12", " kernels/s", "1/s", 12.0),
        # The name of the next number.
        ("950", " min 3 max 1000", "s", 950.0),
        ("12", " m=3", "s", 12.0),
    ],
)
def test_a_number_is_converted_from_the_unit_that_follows(text, after, unit, value):
    assert read_quantity(text, unit, after=after) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "unit", "printed", "words"),
    [
        ("12.5GB", "s", None, "'12.5GB' is in GB, which cannot be converted to s"),
        ("12.5", "s", "GB", "is in GB"),
        ("12.5ms", "", None, "no unit is declared: write unit = 'ms'"),
        ("1:02", "MB", None, "is in s, which cannot be converted to MB"),
    ],
)
def test_a_unit_that_cannot_be_converted_is_an_error(text, unit, printed, words):
    with pytest.raises(UnitError, match=words):
        read_quantity(text, unit, printed=printed)


def test_a_number_that_a_pattern_cuts_short_is_completed():
    assert whole_number("0.125", "D+02 s") == ("0.125D+02", " s")
    assert whole_number("1.2", "k tokens") == ("1.2k", " tokens")
    assert whole_number("1.2", "kB") == ("1.2", "kB")
    assert whole_number("12", ",134") == ("12", ",134")


@pytest.mark.parametrize(("unit", "to"), [("GB", "s"), ("Hartree", "Ry"), ("Mb", "MB"), ("ns", "GB/s")])
def test_units_of_different_quantities_are_not_converted(unit, to):
    assert conversion(unit, to) is None


def test_hours_a_nanosecond_become_nanoseconds_a_day():
    assert conversion("hours/ns", "ns/day")(2.0) == pytest.approx(12.0)


@pytest.mark.parametrize("word", ["loss", "Ry", "m", "steps", "atoms"])
def test_a_word_that_has_no_other_scale_is_no_unit(word):
    assert other_scales(word) == ()
