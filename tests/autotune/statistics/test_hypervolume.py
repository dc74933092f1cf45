from itertools import combinations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.statistics.hypervolume import Hypervolume

fronts = st.integers(2, 4).flatmap(lambda width: st.lists(st.tuples(*[st.integers(0, 6)] * width), max_size=5))


def by_inclusion_and_exclusion(points, ends):
    boxes = [point for point in points if max(point) < max(ends)]
    return sum(
        (-1) ** (size + 1) * prod(end - max(costs) for end, costs in zip(ends, zip(*some, strict=True), strict=True))
        for size in range(1, len(boxes) + 1)
        for some in combinations(boxes, size)
    )


@given(fronts)
def test_the_volume_is_exact_whatever_the_order_and_for_equal_points(points):
    ends = (5,) * (len(points[0]) if points else 2)
    volume = Hypervolume(tuple(map(float, ends)))
    for point in points:
        volume.add(tuple(map(float, point)))
    assert volume.value == pytest.approx(by_inclusion_and_exclusion(points, ends))
