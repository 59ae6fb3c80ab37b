"""Pooling sizes against an enumeration of windows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import InputError
from dse.workload.operators import Window
from dse.workload.pooling import pooled, pooling_window


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 5), st.integers(0, 4), st.integers(0, 4), st.booleans())
def test_size_is_the_number_of_windows(size, filter_, stride, first, last, ceil):
    first, last = min(first, filter_ - 1), min(last, filter_ - 1)
    window = Window(FY=filter_, FX=1, SY=stride, PT=first, PB=last)
    starts = range(-first, size + last, stride)
    # All windows inside the padded input; rounding up adds the next one, if it begins before the padding behind the input.
    inside = [start for start in starts if start + filter_ <= size + last]
    if not inside:
        with pytest.raises(InputError):
            pooled("Y", size, window, ceil)
        return
    partly = ceil and inside[-1] + filter_ < size + last and inside[-1] + stride < size
    assert pooled("Y", size, window, ceil) == len(inside) + partly


@pytest.mark.parametrize("size, filter_, stride, ceil, expected", [
    (109, 3, 2, True, 54), (112, 3, 2, True, 56), (14, 2, 2, True, 7), (55, 3, 2, False, 27), (111, 3, 2, True, 55)])
def test_sizes_that_networks_have(size, filter_, stride, ceil, expected):
    assert pooled("X", size, Window(FY=1, FX=filter_, SX=stride), ceil) == expected


def test_shorthands():
    assert pooling_window({"F": 3, "S": 2, "P": 1}) == Window(3, 3, 2, 2, 1, 1, 1, 1)
    assert pooling_window({"FY": 2, "FX": 4, "SX": 3}) == Window(FY=2, FX=4, SX=3)


@pytest.mark.parametrize("given_, text", [
    ({"F": 2, "FX": 2}, "FX: FX is given twice, got 2"), ({"F": 0}, "F: out of range, got 0; allowed: 1 to 4095"),
    ({"F": 2, "P": 2}, "PT: a window in the padding alone: FY=2, got 2; allowed: at most 1"),
    ({"F": 2, "D": 2}, "D: unknown key, got 'D'; allowed: F, S, P, FY"), ({"FY": 2}, "FX: missing; pooling needs F, or FY and FX"),
    ({"F": "2"}, "F: must be a whole number, got '2'")])
def test_wrong_windows(given_, text):
    with pytest.raises(InputError) as caught:
        pooling_window(given_)
    assert str(caught.value).startswith(text)
