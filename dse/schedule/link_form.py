"""Layers of a chain in closed form: every tiling of a layer whose input or output stays on chip, at once.

The same sum over kinds of phases as :mod:`dse.schedule.closed_form`, with what a chain changes: a kept input moves nothing and has one
region of the input banks; a kept output takes a cycle a beat, before what its phase loads. Equal to
:func:`dse.schedule.chain.predict_link`, to :class:`dse.schedule.tiling.TilePlan` and to the hardware, always.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dse.schedule.axes import FIRST, Booleans, ChannelCuts, Floats, Sizes, SpatialCuts, channel_cuts, spatial_cuts
from dse.schedule.closed_form import ClosedForm, Run, channel_codes, spatial_codes
from dse.schedule.frame import every_row
from dse.schedule.phase_kinds import Kind, Structure, kinds, structures
from dse.schedule.program_shape import Pattern, program_shape
from dse.schedule.tiling import MAX_BURST_BEATS, Order, Tiling, windows
from hdl.design import FIXED_DEPTHS
from hdl.mapping import Axis, Format, output_beats, x_axis, y_axis
from hdl.timing import MEMORY_END_CYCLES, MEMORY_START_CYCLES, PHASE_CHANGE_CYCLES, STORE_ON_CHIP_START_CYCLES

Integers = NDArray[np.int64]
GRID = 1 << 18
"""Tilings looked at at a time."""


@dataclass(frozen=True)
class Link:
    """What of a layer stays on chip: the input, from the layer before; the output, for the next one."""

    input_kept: bool = False
    output_kept: bool = False


class LinkForm(ClosedForm):
    """Cycles, beats and bank entries of tilings of a linked layer; ``channels``, ``y`` and ``x`` as :class:`_LinkCuts` has them."""

    def __init__(self, run: Run, link: Link, structure: Structure, channels: ChannelCuts, y: SpatialCuts, x: SpatialCuts,
                 programs: Floats | None = None) -> None:
        super().__init__(run, structure, channels, y, x, programs)
        self.link = link

    @cached_property
    def cycles(self) -> Floats:
        """From the start of the program to that of the next one where the output is kept, else to the last write beat."""
        _, beats, first, _ = self._program
        total = np.array(self.before_cycles(beats, first) + self._last_phase_cycles)
        for kind in self._kinds():
            longest = self._memory_cycles(kind)
            if kind.evaluates:
                longest = np.maximum(longest, self.evaluation_cycles)
            if kind.compute is not None:
                longest = np.maximum(longest, self._compute(kind.compute))
            total = total + (longest + PHASE_CHANGE_CYCLES) * self._count(kind.counts)
        return total

    @property
    def beats_written(self) -> Floats:
        return 0 * self.stored_beats if self.link.output_kept else self.stored_beats

    @property
    def travelling_cycles(self) -> Floats:
        """All beats but the program's that travel, at the offered rate."""
        timing = self.run.timing
        return np.ceil((self.loaded_beats + self.beats_written) * timing.den / timing.num)

    @property
    def _last_phase_cycles(self) -> Floats:
        """A store alone."""
        timing = self.run.timing
        if self.link.output_kept:
            return STORE_ON_CHIP_START_CYCLES + self.last_store_beats + MEMORY_END_CYCLES + PHASE_CHANGE_CYCLES
        return MEMORY_START_CYCLES + timing.latency_cycles + np.ceil(self.last_store_beats * timing.den / timing.num) + 1

    def _kinds(self) -> Iterator[Kind]:
        for kind in kinds(self.structure):
            _, weights, parameters = kind.load
            yield replace(kind, load=(None, weights, parameters)) if self.link.input_kept else kind

    def _memory_cycles(self, kind: Kind) -> Floats | float:
        timing = self.run.timing
        kept = self.link.output_kept and kind.store is not None
        moved = self._moved(replace(kind, store=None) if kept else kind)
        cycles: Floats | float = 0.0
        if kept:
            assert kind.store is not None
            cycles = STORE_ON_CHIP_START_CYCLES + self._store(kind.store)
        if moved is not None:
            cycles = cycles + np.ceil(moved / timing.num) + (MEMORY_START_CYCLES + timing.latency_cycles)
        return cycles + MEMORY_END_CYCLES if kept or moved is not None else cycles

    def entries_needed(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Of each input (the next layer's region apart), weight, output, psum and parameter bank."""
        needed = super().entries_needed()
        if not self.link.input_kept:
            return needed
        return (self.y.frame * self.x.frame * self.channels.pixel_entries, *needed[1:])

    def legal(self) -> Floats:
        """Whether bursts fit their length fields; of programs see ``program_words``."""
        c, structure = self.channels, self.structure
        weights = c.groups[FIRST] * c.records[FIRST] * c.runs[FIRST]
        parameters = c.groups[FIRST] * c.channels[FIRST] * self.parameter_beats
        leaving = self.x.outputs[FIRST] * c.output_beats[FIRST]
        most = np.maximum(np.maximum(weights, parameters), leaving)
        if not self.link.input_kept and not {"C", "S"} & set(structure.loops) and x_axis(self.run.layer).step == 1:
            group = self.run.grouping
            most = np.maximum(most, self.x.frame * Format.of(self.run.design, "input").beats(group.count * group.words))
        result: Floats = most <= MAX_BURST_BEATS
        return result

    @property
    def program_words(self) -> Floats:
        """Of the program; infinite where they exceed its RAM."""
        return self._program[0]


# -- cuts --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _LinkCuts:
    """The ways to cut a linked layer. With a kept input ``frame`` are the rows and columns of its region, ``pixel_entries`` those of a
    whole pixel, and no input beats travel."""

    channels: ChannelCuts
    y: SpatialCuts
    x: SpatialCuts

    @classmethod
    def of(cls, run: Run, link: Link, sizes: Sizes) -> _LinkCuts:
        design, layer, group = run.design, run.layer, run.grouping
        entry = design.cols * design.words_per_entry("output") if link.output_kept else None
        channels = channel_cuts(design, layer, sizes, entry)
        if not link.input_kept:
            return cls(channels, spatial_cuts(y_axis(layer), design.lanes, sizes), spatial_cuts(x_axis(layer), 1, sizes))
        y, x = every_row(y_axis(layer), layer.SY, layer.DY, layer.IY), every_row(x_axis(layer), layer.SX, layer.DX, layer.IX)
        pixel = Format.of(design, "input").entries(group.count * group.words)
        channels = replace(channels, input_beats=0 * channels.input_beats, pixel_entries=np.full_like(channels.pixel_entries, pixel))
        rows, columns = spatial_cuts(y, design.lanes, sizes), spatial_cuts(x, 1, sizes)
        kept = np.array([_kept_rows(y, int(size), design.lanes) for size in rows.size], np.float64)
        rows = replace(rows, frame=kept).take(kept > 0)
        return cls(channels, rows, replace(columns, frame=np.full_like(columns.frame, x.count)))


def _kept_rows(axis: Axis, size: int, lanes: int) -> int:
    """Rows of a kept input that each lane has; 0 where lanes would be at several distances."""
    tiles = windows(axis, size, lanes)
    assert not isinstance(tiles, str)
    if lanes == 1:
        return axis.count
    bands = {window.band for window in tiles}
    if len(bands) > 1:
        return 0
    band = bands.pop() * axis.stride
    span = tiles[-1].part.start * axis.stride + axis.span(tiles[-1].band)
    return min(span, axis.first + axis.count) - min(max(0, axis.first - lane * band) for lane in range(lanes))


class _Programs:
    """Lengths of the programs of one structure, filled in as they are asked for: each takes a millisecond to find out, once for all
    designs and layers of a kind."""

    def __init__(self, run: Run, link: Link, structure: Structure) -> None:
        self.run, self.link, self.structure = run, link, structure
        self._table, self._known = np.full((256, 4), np.inf), np.zeros(256, bool)

    def of(self, channels: ChannelCuts, y: SpatialCuts, x: SpatialCuts) -> Floats:
        """By codes, for at least these tilings; see :attr:`dse.schedule.closed_form.ClosedForm.program_codes`."""
        occurring = np.zeros(256, bool)
        occurring[channel_codes(channels) * 16 + spatial_codes(y) * 4 + spatial_codes(x)] = True
        for code in np.flatnonzero(occurring & ~self._known).tolist():
            self._table[code], self._known[code] = self._lengths(code), True
        return self._table

    def _lengths(self, code: int) -> tuple[float, ...]:
        design, layer, structure, link = self.run.design, self.run.layer, self.structure, self.link
        channel, row, column = code >> 4, code >> 2 & 3, code & 3
        varying = {"S": channel & 1, "K": channel & 2, "C": channel & 4, "Y": row & 1, "X": column & 1}
        shape = program_shape(design, Pattern(
            structure.order, structure.resident, frozenset(structure.loops), frozenset(loop for loop in varying if varying[loop]),
            frozenset(loop for loop, differs in (("Y", row & 2), ("X", column & 2)) if differs), grouped=bool(channel & 8),
            stepped=not link.input_kept and x_axis(layer).step > 1,
            dense=output_beats(design, layer.K) == Format.of(design, "output").beats(-(-layer.K // design.cols)),
            input_kept=link.input_kept, output_kept=link.output_kept))
        return (shape.words if shape.fits else np.inf, shape.beats(design.bus_bits), shape.first_instructions, shape.tile_instructions)


# -- tilings -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinkTilings:
    """Tilings of a linked layer and what they take, arrays of one length; ``needs`` (5, n): entries of each input, weight, output, psum
    and parameter bank, the next layer's region apart. ``place`` (4, n): structure, channel cut, row cut, column cut."""

    space: LinkSpace
    needs: Integers
    cycles: Integers
    beats_read: Integers
    beats_written: Integers
    issue_cycles: Integers
    memory_bound_cycles: Integers
    drain_bound_cycles: Integers
    place: Integers

    def __len__(self) -> int:
        return len(self.cycles)

    @property
    def beats(self) -> Integers:
        return self.beats_read + self.beats_written

    def take(self, which: Integers | Booleans) -> LinkTilings:
        return LinkTilings(self.space, *(getattr(self, field.name)[..., which] for field in fields(self)[1:]))

    def tiling(self, at: int) -> Tiling:
        return self.space.tiling(*self.place[:, at].tolist())


@dataclass(frozen=True)
class _Part:
    """The tilings of one structure: every channel cut with every row and column cut of these."""

    structure: Structure
    m: Integers
    y: Integers
    x: Integers
    programs: _Programs


class LinkSpace:
    """Every legal tiling of a layer of which ``link`` says what stays on chip; ``run.design``'s bank sizes do not matter."""

    def __init__(self, run: Run, link: Link, sizes: Sizes) -> None:
        self.run, self.link, self.sizes = run, link, sizes
        self.cuts = cuts = _LinkCuts.of(run, link, sizes)
        c = cuts.channels
        kinds = (c.s_count > 1) * 4 + (c.k_count > 1) * 2 + (c.c_count > 1)
        self._parts: list[_Part] = []
        for kind, y_tiled, x_tiled in product(np.unique(kinds).tolist(), (False, True), (False, True)):
            y, x = np.flatnonzero((cuts.y.count > 1) == y_tiled), np.flatnonzero((cuts.x.count > 1) == x_tiled)
            if not len(y) or not len(x):
                continue
            for structure in structures(run.layer.B, (bool(kind & 4), bool(kind & 2), bool(kind & 1)), y_tiled, x_tiled):
                if not (link.input_kept and structure.resident and structure.order is Order.WEIGHTS_OUTER):  # it is on chip already
                    self._parts.append(_Part(structure, np.flatnonzero(kinds == kind), y, x, _Programs(run, link, structure)))

    def __len__(self) -> int:
        """How many there are, whether they fit banks or not."""
        return sum(len(part.m) * len(part.y) * len(part.x) for part in self._parts)

    def tiling(self, part: int, m: int, y: int, x: int) -> Tiling:
        c, structure = self.cuts.channels, self._parts[part].structure
        return Tiling(ts=int(c.ts[m]), tk=int(c.tk[m]), tc=int(c.tc[m]), ty=int(self.cuts.y.size[y]), tx=int(self.cuts.x.size[x]),
                      order=structure.order, resident=structure.resident)

    def fitting(self, depths: tuple[int, int, int, int]) -> LinkTilings:
        """Those that input, weight, output and psum banks of these depths hold, and whose bursts and programs fit."""
        none, some = np.zeros(0, np.int64), np.zeros((4, 0), np.int64)
        parts = [LinkTilings(self, np.zeros((5, 0), np.int64), none, none, none, none, none, none, some)]
        parts += [found for number, part in enumerate(self._parts) for found in self._fitting(number, part, depths)]
        joined: list[Integers] = [np.concatenate([getattr(part, field.name) for part in parts], axis=-1)
                                  for field in fields(LinkTilings)[1:]]
        return LinkTilings(self, *joined)

    def _fitting(self, number: int, part: _Part, depths: tuple[int, ...]) -> Iterator[LinkTilings]:
        cuts, limits = self.cuts, (*depths, FIXED_DEPTHS["parameter"])
        step = max(1, GRID // (len(part.y) * len(part.x)))
        for start in range(0, len(part.m), step):
            some = part.m[start:start + step]
            form = LinkForm(self.run, self.link, part.structure, cuts.channels.take(some).reshaped((-1, 1, 1)),
                            cuts.y.take(part.y).reshaped((-1, 1)), cuts.x.take(part.x))
            fits: Booleans = np.broadcast_to(form.legal() > 0, (len(some), len(part.y), len(part.x)))
            for need, limit in zip(form.entries_needed(), limits, strict=True):
                fits = fits & (need <= limit)
            m, y, x = np.nonzero(fits)
            yield self._evaluate(number, part, some[m], part.y[y], part.x[x])

    def _evaluate(self, number: int, part: _Part, m: Integers, y: Integers, x: Integers) -> LinkTilings:
        tables = self.cuts.channels.take(m), self.cuts.y.take(y), self.cuts.x.take(x)
        form = LinkForm(self.run, self.link, part.structure, *tables, part.programs.of(*tables))
        figures = (form.cycles, form.beats_read, form.beats_written, form.issue_cycles, form.travelling_cycles, form.drain_bound_cycles)
        runs = np.isfinite(form.program_words)
        needs = np.stack([np.broadcast_to(need, m.shape) for need in form.entries_needed()])
        place = np.stack([np.full_like(m, number), m, y, x])
        return LinkTilings(self, *(values[..., runs].astype(np.int64) for values in (
            needs, *(np.broadcast_to(values, m.shape) for values in figures), place)))


@lru_cache(maxsize=256)
def link_space(run: Run, link: Link, sizes: Sizes) -> LinkSpace:
    """One for all designs that differ in nothing but bank sizes: give one of them alike."""
    return LinkSpace(run, link, sizes)


def every_size_up_to(run: Run, link: Link, most: int) -> LinkSpace:
    """Of all sizes where there are at most ``most`` tilings, else of the even ones (:class:`dse.schedule.axes.Sizes`)."""
    space = link_space(run, link, Sizes.ALL)
    return space if len(space) <= most else link_space(run, link, Sizes.EVEN)
