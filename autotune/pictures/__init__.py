"""Pictures: what a study shows, as values that a page, a report and a file draw alike."""

from autotune.pictures.chart import Chart
from autotune.pictures.charts import charts_of
from autotune.pictures.files import FORMATS, draw_calibration
from autotune.pictures.predictions import Point

__all__ = ["FORMATS", "Chart", "Point", "charts_of", "draw_calibration"]
