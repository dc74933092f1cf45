"""Write pictures to PNG, SVG or PDF files, chosen by the file's suffix, or return them as inline SVG."""

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from autotune.errors import CannotRunHereError
from autotune.files import refuse_link_of_others
from autotune.pictures.chart import Chart
from autotune.pictures.matplotlib import import_matplotlib, to_matplotlib
from autotune.pictures.palette import DARK
from autotune.pictures.predictions import Point, calibration

FORMATS = (".png", ".svg", ".pdf")
_DPI = 150
_REFERENCE = re.compile(r'(\bid="|url\(#|xlink:href="#)([\w.-]+)')
_PLACES = re.compile(r' (?:d|x|y|transform|x1|x2|y1|y2)="[^"]*"')
_DIGITS = re.compile(r"(\.[0-9]{2})[0-9]+")
_STYLE = re.compile(r'style="([^"]*)"')
_OFTEN = 4
_COLOUR = re.compile("|".join(DARK))


def draw_calibration(settings_by_title: Mapping[str, Mapping[str, Sequence[Point]]], path: Path) -> None:
    """Draw predicted over measured values to a file, a panel for each way to leave out, a colour for each setting.

    Raises:
        CannotRunHereError: The file cannot be written.
    """
    save(calibration(settings_by_title), path)


def save(chart: Chart, path: Path, named_by: str = "--picture") -> None:
    """Write a chart with its title to a file; `named_by` is the option that named the file.

    Raises:
        CannotRunHereError: The file cannot be written.
    """
    figure = to_matplotlib(chart, title=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        refuse_link_of_others(path)
        with _ignore_missing_glyphs():
            figure.savefig(path, dpi=_DPI, facecolor="white")
    except OSError as error:
        msg = f"the picture {path} cannot be written: {error.strerror or error}; name another file with {named_by}"
        raise CannotRunHereError(msg) from error


def to_svg(chart: Chart) -> str:
    """Return a chart as an SVG element for an HTML page.

    Text stays text, in the font of the page. Every colour is a CSS variable, `--c0072b2` for #0072b2, with that colour
    as its default. Ids contain the name of the chart, so that a page can have several charts.
    """
    mpl = import_matplotlib()
    with (
        _ignore_missing_glyphs(),
        mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "autotune", "font.family": ["sans-serif"]}),
    ):
        written = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        to_matplotlib(chart).savefig(written, format="svg", metadata=nothing, transparent=True)
    return _make_embeddable(written.getvalue(), chart.name)


@contextmanager
def _ignore_missing_glyphs() -> Iterator[None]:
    """Silence the warning for letters that the font lacks, which are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        yield


def _make_embeddable(svg: str, name: str) -> str:
    element = svg[svg.index("<svg") :]
    element = re.sub(r"\s*<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r' xmlns(:xlink)?="[^"]*"', "", element)
    element = _REFERENCE.sub(lambda match: f"{match[1]}{name}-{match[2]}", element)
    element = element.replace("xlink:href=", "href=")
    # Two digits, hundredths of a point, are enough.
    element = _PLACES.sub(lambda match: _DIGITS.sub(r"\1", match[0]), element)
    element = re.sub(r'<svg ([^>]*?)\b(height|width)="[^"]*"', r"<svg \1", element)
    element = re.sub(r'<svg ([^>]*?)\b(height|width)="[^"]*"', r"<svg \1", element)
    element = _COLOUR.sub(lambda match: f"var({variable(match[0])}, {match[0]})", element)
    return _use_classes(element, name).strip()


def _use_classes(element: str, name: str) -> str:
    """Replace frequent styles by CSS classes: repeated for every mark, they would be most of the text."""
    counts = Counter(_STYLE.findall(element))
    classes = {style: f"{name}-s{index}" for index, style in enumerate(counts) if counts[style] >= _OFTEN}
    if not classes:
        return element
    element = _STYLE.sub(lambda match: f'class="{classes[match[1]]}"' if match[1] in classes else match[0], element)
    rules = "".join(f".{its}{{{style}}}" for style, its in classes.items())
    head, tail = element.split(">", 1)
    return f"{head}><style>{rules}</style>{tail}"


def variable(colour: str) -> str:
    """Return the CSS variable for a colour of a picture."""
    return f"--c{colour.removeprefix('#')}"
