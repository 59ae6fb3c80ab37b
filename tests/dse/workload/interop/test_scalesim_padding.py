"""Padding that is in the sizes of a table, and padding that was forgotten."""

from __future__ import annotations

import pytest

from dse.workload.interop.scalesim_padding import APPLIED, EITHER, FORGOTTEN, PaddedRow, padding_remarks


def rows(*table: tuple[str, int, int, int, int, int]) -> list[PaddedRow]:
    """(name, size, filter, channels, filters, stride) of square layers."""
    return [PaddedRow(name, (size, size), (taps, taps), (stride, stride), channels, filters, ((size - taps) // stride + 1,) * 2)
            for name, size, taps, channels, filters, stride in table]


def test_resnet18_with_padding_forgotten():
    """The table of SCALE-Sim's own repository begins like this."""
    found = padding_remarks(rows(("conv1", 224, 7, 3, 64, 2), ("conv2a", 56, 3, 64, 64, 1), ("conv2b", 56, 3, 64, 64, 1),
                                 ("conv3a", 56, 3, 64, 128, 2), ("conv3b", 28, 3, 128, 128, 1), ("side", 56, 1, 64, 128, 2)))
    assert found == [(FORGOTTEN, ["conv1", "conv2a", "conv2b", "conv3a"])]


def test_resnet18_with_padding_applied():
    found = padding_remarks(rows(("conv1", 230, 7, 3, 64, 2), ("conv2a", 58, 3, 64, 64, 1), ("conv2b", 58, 3, 64, 64, 1),
                                 ("conv3a", 58, 3, 64, 128, 2), ("conv3b", 30, 3, 128, 128, 1), ("fc", 1, 1, 128, 10, 1)))
    assert found == [(APPLIED, ["conv2a", "conv2b", "conv3a", "conv3b"])]


def test_both_habits_in_one_table():
    """AlexNet as SCALE-Sim ships it: the second row is padded, the later ones are not."""
    found = padding_remarks(rows(("conv1", 227, 11, 3, 96, 4), ("conv2", 31, 5, 96, 256, 1), ("conv3", 13, 3, 256, 384, 1),
                                 ("conv4", 13, 3, 384, 384, 1), ("conv5", 13, 3, 384, 256, 1)))
    assert found == [(APPLIED, ["conv2"]), (FORGOTTEN, ["conv3", "conv4"])]


def test_either():
    """Nothing else in the table decides."""
    assert padding_remarks(rows(("a", 15, 3, 8, 8, 1), ("b", 15, 3, 8, 8, 1))) == [(EITHER, ["b"])]


@pytest.mark.parametrize("table", [
    [("c1", 32, 5, 1, 6, 1), ("c3", 14, 5, 6, 16, 1), ("c5", 5, 5, 16, 120, 1)],  # LeNet-5 has no padding
    [("a", 14, 1, 8, 8, 1), ("b", 99, 3, 8, 8, 1)],  # has nothing to do with the row before
    [("a", 15, 3, 8, 16, 1), ("b", 15, 3, 8, 8, 1)], []])  # other channels; no rows
def test_nothing_to_say(table):
    assert padding_remarks(rows(*table)) == []
