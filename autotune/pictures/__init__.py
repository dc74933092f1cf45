"""Pictures: the charts of studies as values, which the page, reports and files draw in the same way."""

from autotune.pictures.chart import Chart
from autotune.pictures.charts import charts_of
from autotune.pictures.files import FORMATS, draw_calibration
from autotune.pictures.predictions import Point

__all__ = ["FORMATS", "Chart", "Point", "charts_of", "draw_calibration"]
