"""Every way to cut one loop of a layer into tiles, as arrays: what the closed form and the search are computed from.

Tiles along a loop are alike but for the first, the second (which may be the last) and the last. So a quantity that depends on a tile is
an array of shape (4, n): by class of the tile, for each of n ways to cut the loop.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from math import lcm
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dse.schedule.tiling import windows
from hdl.design import MAX_ACCUMULATOR_BITS, Design, Multiplier
from hdl.layer import Layer
from hdl.mapping import Axis, Format, Grouping, channel_alignment

Floats = NDArray[np.float64]  # whole numbers below 2**53, which floating point holds exactly
Booleans = NDArray[np.bool_]

FIRST, SECOND, MIDDLE, LAST = range(4)
"""Classes of tiles along a loop. With two tiles the second is the last; with one, only ``FIRST`` counts."""

Table = TypeVar("Table", bound="Cuts")


@dataclass(frozen=True)
class Cuts:
    """Ways to cut; every field is an array whose last axis runs over them."""

    def arrays(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]

    def take(self: Table, which: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Table:
        """Those ways alone."""
        return type(self)(*(values[..., which] for values in self.arrays()))

    def lazily(self: Table, which: NDArray[np.intp]) -> Table:
        """As :meth:`take`, of those arrays alone that somebody asks for."""
        return cast(Table, _Taken(self, which))

    def reshaped(self: Table, shape: tuple[int, ...]) -> Table:
        """With that shape in place of the last axis, so that tables broadcast against each other."""
        return type(self)(*(values.reshape(*values.shape[:-1], *shape) for values in self.arrays()))


class _Taken:
    def __init__(self, cuts: Cuts, which: NDArray[np.intp]) -> None:
        self._cuts, self._which = cuts, which

    def __getattr__(self, name: str) -> Any:
        values = getattr(self._cuts, name).take(self._which, axis=-1)
        setattr(self, name, values)
        return values


@dataclass(frozen=True)
class SpatialCuts(Cuts):
    """Output rows (or columns) cut into tiles of ``size``.

    ``count`` tiles; ``outputs``: rows of a tile; ``band``: of them a lane's; ``load``: input rows of a tile; ``frame``: rows that a bank
    must hold; ``load_sum``, ``band_sum``: over all tiles; ``varies``, ``windows_vary``: see :class:`dse.schedule.tiling.TilePlan`.
    """

    size: Floats
    count: Floats
    outputs: Floats
    band: Floats
    load: Floats
    frame: Floats
    load_sum: Floats
    band_sum: Floats
    varies: Booleans
    windows_vary: Booleans


class Sizes(StrEnum):
    """Which tile sizes are looked at."""

    ALL = "all"  # every one that words and beats allow
    EVEN = "even"  # for each number of tiles the most even ones: in the smallest steps, and in whole lanes or rows of the array


def even_sizes(total: int, *steps: int) -> list[int]:
    """For each number of tiles the smallest size in each of ``steps``, and the whole."""
    units = [(step, -(-total // step)) for step in steps if step <= total] or [(total, 1)]
    return sorted({min(total, -(-count // tiles) * step) for step, count in units for tiles in range(1, count + 1)})


@lru_cache(maxsize=512)
def spatial_cuts(axis: Axis, lanes: int, sizes: Sizes = Sizes.ALL) -> SpatialCuts:
    """Those sizes that the hardware runs, smallest first."""
    rows = []
    for size in range(1, axis.outputs + 1) if sizes is Sizes.ALL else even_sizes(axis.outputs, 1, lanes):
        tiles = windows(axis, size, lanes)
        if isinstance(tiles, str):
            continue
        kinds = [tiles[0], tiles[min(1, len(tiles) - 1)], tiles[len(tiles) // 2], tiles[-1]]
        frames = [min(axis.span(w.band), w.high - lane * w.band * axis.stride) - w.shift
                  for w in kinds for lane in range(-(-w.part.size // w.band))]
        rows.append((size, len(tiles), [w.part.size for w in kinds], [w.band for w in kinds], [w.rows for w in kinds],
                     max(frames), sum(w.rows for w in tiles), sum(w.band for w in tiles),
                     kinds[0].part.size != kinds[-1].part.size, len({(w.low, w.high, w.shift) for w in kinds}) > 1))
    columns = list(zip(*rows, strict=True))
    types: list[Any] = [np.float64] * 8 + [np.bool_] * 2
    return SpatialCuts(*(np.array(column, kind).T for column, kind in zip(columns, types, strict=True)))


@dataclass(frozen=True)
class ChannelCuts(Cuts):
    """Supergroups, output channels and input words cut into tiles of ``ts``, ``tk``, ``tc``; loops S, K, C.

    By class of the loop: ``groups`` (S), ``channels``, ``records``, ``blocks`` (K), ``runs`` in beats, ``vectors`` (C), ``input_beats`` of
    a pixel (C where it is cut, else S), ``output_beats`` of a pixel (K where it is cut, else S). ``*_slot``: entries that a tile takes in
    its banks; ``pixel_entries``: of one input pixel.
    """

    ts: Floats
    tk: Floats
    tc: Floats
    s_count: Floats
    k_count: Floats
    c_count: Floats
    groups: Floats
    channels: Floats
    records: Floats
    blocks: Floats
    runs: Floats
    vectors: Floats
    input_beats: Floats
    output_beats: Floats
    weight_slot: Floats
    parameter_slot: Floats
    pixel_entries: Floats

    @property
    def size(self) -> int:
        return len(self.ts)


def _ceil(values: Floats, by: float) -> Floats:
    return np.ceil(values / by)


def _classes(total: int, size: Floats) -> tuple[Floats, Floats]:
    """(tiles, sizes by class) of a loop of ``total`` in tiles of ``size``."""
    count = np.ceil(total / size)
    last = total - (count - 1) * size
    return count, np.stack([size, np.where(count == 2, last, size), size, last])


@lru_cache(maxsize=4096)
def array_alone(design: Design) -> Design:
    """The same for all designs whose channels are cut alike: neither lanes nor clock nor sizes of banks matter, only whether there is a
    psum RAM, and how many drains a lane has."""
    return _array(design, design.drains_per_lane, bool(design.psum_bytes))


@lru_cache(maxsize=4096)
def _array(design: Design, drains: int, psum: bool) -> Design:
    input_bits, weight_bits = (max(design.word_bits(kind), design.bus_bits) for kind in ("input", "weight"))
    return Design(rows=design.rows, cols=design.cols, weight_bits=design.weight_bits, activation_bits=design.activation_bits,
                  bus_bits=design.bus_bits, accumulator_bits=MAX_ACCUMULATOR_BITS, multiplier=Multiplier.LUT, drains=drains,
                  input_bytes=input_bits * 64, weight_bytes=design.rows * weight_bits * 64, output_bytes=design.bus_bits * 64,
                  psum_bytes=drains * MAX_ACCUMULATOR_BITS * 64 if psum else 0)  # at least 512 entries a bank


def channel_cuts(design: Design, layer: Layer, sizes: Sizes = Sizes.ALL, align: int | None = None) -> ChannelCuts:
    """The cuts that the words and beats of ``design`` allow; whether the banks hold them is not asked here.

    ``align``: where tiles of output channels may end, in place of :func:`hdl.mapping.channel_alignment`.
    """
    cuts, step = _all_channel_cuts(_array(array_alone(design), 1, True), layer, sizes, align), design.drains_per_lane
    which = np.ones(cuts.size, bool)
    if not design.psum_bytes:
        which &= cuts.c_count == 1
    if step > 1:
        group = Grouping.of(design, layer)
        uncut = (cuts.tk == group.outputs) & (group.count == 1)
        which &= uncut | (group.outputs % step == 0) & (cuts.tk % step == 0)
        cuts = replace(cuts, parameter_slot=_ceil(cuts.parameter_slot, step))
    return cuts if which.all() else cuts.take(which)


@lru_cache(maxsize=256)
def _all_channel_cuts(design: Design, layer: Layer, sizes: Sizes, align: int | None) -> ChannelCuts:
    """With a psum RAM and one drain a lane."""
    group, align, form = Grouping.of(design, layer), align or channel_alignment(design), Format.of(design, "input")
    ts, tk, tc = _channel_sizes(design, group, align, sizes).T
    s_count, groups = _classes(group.count, ts)
    k_count, channels = _classes(group.outputs, tk)
    c_count, words = _classes(group.words, tc)
    packed = group.packed > 1
    records = np.full_like(channels, group.group_outputs) if packed else channels
    blocks = np.full_like(channels, group.blocks) if packed else _ceil(channels, design.rows)
    vectors = words * (layer.FY * layer.FX)
    weight_form = Format.of(design, "weight")
    run_entries = _ceil(vectors, weight_form.words_per_entry)
    input_entries = _ceil(np.where(c_count > 1, words, groups * group.words), form.words_per_entry)
    leaving = np.where(k_count > 1, channels, groups * np.where(ts > 1, group.outputs, tk))
    return ChannelCuts(
        ts, tk, tc, s_count, k_count, c_count, groups, channels, records, blocks, run_entries * weight_form.beats_per_entry, vectors,
        input_entries * form.beats_per_entry, _output_beats(design, leaving),
        weight_slot=groups[FIRST] * blocks[FIRST] * run_entries[FIRST],
        parameter_slot=groups[FIRST] * channels[FIRST],
        pixel_entries=input_entries[FIRST])


def _channel_sizes(design: Design, group: Grouping, align: int, sizes: Sizes) -> Floats:
    """Legal (ts, tk, tc), shape (n, 3); the rules of :class:`dse.schedule.tiling.TilePlan`."""
    words_per_entry = design.words_per_entry("input")

    def steps(total: int, *by: int) -> Floats:
        if sizes is Sizes.EVEN:
            return np.array(even_sizes(total, *by), np.float64)
        return np.array([*range(by[0], total, by[0]), total], np.float64)

    result = []
    for ts in steps(group.count, 1).astype(int).tolist():
        if ts < group.count and (ts * group.outputs % align or ts * group.words % words_per_entry):
            continue
        tks = steps(group.outputs, *((group.outputs,) if ts > 1 or group.packed > 1 else (align, lcm(align, design.rows))))
        tcs = steps(group.words, group.words if ts > 1 else words_per_entry)
        tk, tc = np.meshgrid(tks, tcs, indexing="ij")
        result.append(np.stack([np.full(tk.size, float(ts)), tk.reshape(-1), tc.reshape(-1)], axis=1))
    return np.concatenate(result) if result else np.zeros((0, 3))


def _output_beats(design: Design, channels: Floats) -> Floats:
    """:func:`hdl.mapping.output_beats` of arrays."""
    form = Format.of(design, "output")
    if form.beats_per_entry == 1:
        return _ceil(_ceil(channels, design.cols), form.words_per_entry)
    words = np.floor(channels / design.cols)
    return words * form.beats_per_entry + _ceil((channels - words * design.cols) * design.activation_bits, design.bus_bits)
