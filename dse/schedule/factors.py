"""Bounds of very many tilings at little cost: every quantity as a sum of products of a channel factor and a pixel factor.

A *block* holds the tilings of one structure: every channel cut (index m) with every pair of a row and a column cut (index p). What fits
the banks is enumerated without looking at what does not; beats are exact, cycles are bounded from below, both by a few multiplications.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dse.schedule.axes import FIRST, LAST, ChannelCuts, Floats, SpatialCuts
from dse.schedule.closed_form import ClosedForm, Run, sum_over
from dse.schedule.phase_kinds import Structure
from dse.schedule.tiling import INPUT_LOOPS, MAX_BURST_BEATS, OUTPUT_LOOPS, PARAMETER_LOOPS, PIXEL_LOOPS, WEIGHT_LOOPS, Order, Tiling
from hdl import timing as hardware
from hdl.design import FIXED_DEPTHS
from hdl.mapping import Format, Grouping, x_axis

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Some:
    """Some tilings of a block: channel cut ``m`` with pixel cut ``p``; ``needs``: entries of each input, weight, output, psum bank."""

    m: Index
    p: Index
    needs: tuple[Floats, Floats, Floats, Floats]

    def take(self, which: NDArray[np.bool_]) -> Some:
        inputs, weights, outputs, sums = (need[which] for need in self.needs)
        return Some(self.m[which], self.p[which], (inputs, weights, outputs, sums))


class Block:
    """All tilings of one structure of a run."""

    def __init__(self, run: Run, structure: Structure, channels: ChannelCuts, y: SpatialCuts, x: SpatialCuts) -> None:
        self.run, self.structure, self.channels, self.y, self.x = run, structure, channels, y, x
        self.form = ClosedForm(run, structure, channels.reshaped((-1, 1, 1)), y.reshaped((-1, 1)), x)

    @property
    def size(self) -> int:
        """How many tilings it holds."""
        return len(self.channels.ts) * len(self.y.size) * len(self.x.size)

    # -- single tilings ---------------------------------------------------------------------------------------------------

    def points(self, m: Index, p: Index) -> ClosedForm:
        y, x = np.divmod(p, len(self.x.size))
        return ClosedForm(self.run, self.structure, self.channels.lazily(m), self.y.lazily(y), self.x.lazily(x), self.form.program_codes[3])

    @cached_property
    def _pixel_cuts(self) -> tuple[SpatialCuts, SpatialCuts]:
        """Row and column cuts by p."""
        y, x = np.divmod(np.arange(len(self.y.size) * len(self.x.size)), len(self.x.size))
        return self.y.take(y), self.x.take(x)

    def grid(self, start: int, stop: int) -> ClosedForm:
        """Channel cuts ``start`` to ``stop`` with every pixel cut: arrays of shape (stop - start, p)."""
        return ClosedForm(self.run, self.structure, self.channels.take(slice(start, stop)).reshaped((-1, 1)), *self._pixel_cuts)

    def tiling(self, m: int, p: int) -> Tiling:
        y, x = divmod(p, len(self.x.size))
        c = self.channels
        return Tiling(ts=int(c.ts[m]), tk=int(c.tk[m]), tc=int(c.tc[m]), ty=int(self.y.size[y]), tx=int(self.x.size[x]),
                      order=self.structure.order, resident=self.structure.resident)

    # -- what fits --------------------------------------------------------------------------------------------------------

    def _pairs(self, y: Floats, x: Floats) -> Floats:
        """A row quantity times a column quantity, by p."""
        return (y[:, None] * x[None, :]).reshape(-1)

    def _channel_slots(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """By m: entries of the input, weight, output, psum and parameter banks, for a pixel factor of 1 in the first, third and fourth."""
        c, loops, structure, design = self.channels, set(self.structure.loops), self.structure, self.run.design
        slots = {data: 2.0 if loops & data else 1.0 for data in (INPUT_LOOPS, WEIGHT_LOOPS, OUTPUT_LOOPS, PARAMETER_LOOPS)}
        inputs, weights = c.pixel_entries * slots[INPUT_LOOPS], c.weight_slot * slots[WEIGHT_LOOPS]
        if structure.resident and structure.order is Order.WEIGHTS_OUTER:
            inputs = c.pixel_entries * c.c_count * self.run.layer.B
        elif structure.resident:
            weights = c.weight_slot * c.s_count * c.k_count * c.c_count
        sums = c.groups[FIRST] * self.run.grouping.passes * c.blocks[FIRST] * design.drain_steps
        return (inputs, weights, c.output_beats[FIRST] * slots[OUTPUT_LOOPS], sums if "C" in loops else 0 * sums,
                c.parameter_slot * slots[PARAMETER_LOOPS])

    @cached_property
    def _frames(self) -> tuple[Floats, Index, Floats]:
        """(pixel factor of the input banks by p, the order that sorts it, sorted)."""
        y, x = self.y.frame, self.x.frame
        if self.structure.resident and self.structure.order is Order.WEIGHTS_OUTER:
            y, x = y * self.y.count, x * self.x.count
        frames = self._pairs(y, x)
        order = np.argsort(frames, kind="stable")
        return frames, order, frames[order]

    def fitting(self, depths: tuple[float, float, float, float], most: int) -> list[Some]:
        """All tilings that banks of these depths hold and whose bursts fit their length fields, in lists of about ``most``."""
        inputs, weights, outputs, sums, parameters = self._channel_slots()
        c, design, layer = self.channels, self.run.design, self.run.layer
        lengths = c.groups[FIRST] * np.maximum(c.records[FIRST] * c.runs[FIRST], c.channels[FIRST] * design.parameter_beats)
        possible = (weights <= depths[1]) & (parameters <= FIXED_DEPTHS["parameter"]) & (lengths <= MAX_BURST_BEATS)
        frames, order, ascending = self._frames
        counts = np.where(possible, np.searchsorted(ascending, depths[0] / inputs, side="right"), 0)
        pixels = self._pairs(self.y.band[FIRST], self.x.outputs[FIRST])
        columns = np.tile(self.x.outputs[FIRST], len(self.y.size))
        group = Grouping.of(design, layer)
        whole = not {"C", "S"} & set(self.structure.loops) and x_axis(layer).step == 1
        row_beats = Format.of(design, "input").beats(group.count * group.words) if whole else 0
        narrow = np.tile(self.x.frame * row_beats <= MAX_BURST_BEATS, len(self.y.size))
        result, ends, start = [], np.cumsum(counts), 0
        while start < len(counts):
            stop = max(start + 1, int(np.searchsorted(ends, (ends[start - 1] if start else 0) + most, side="right")))
            part = counts[start:stop]
            m = np.repeat(np.arange(start, stop), part)
            p = order[np.arange(len(m)) - np.repeat(np.cumsum(part) - part, part)]
            leaving, kept = outputs[m] * pixels[p], sums[m] * pixels[p]
            fits = ((leaving <= depths[2]) & (kept <= depths[3]) & narrow[p]
                    & (columns[p] * c.output_beats[FIRST][m] <= MAX_BURST_BEATS))
            m, p = m[fits], p[fits]
            if len(m):
                result.append(Some(m, p, (inputs[m] * frames[p], weights[m], leaving[fits], kept[fits])))
            start = stop
        return result

    def smallest_needs(self) -> Floats:
        """Entries of the input, weight, output, psum and parameter banks by m, shape (5, m), for the smallest pixel cut."""
        inputs, weights, outputs, sums, parameters = self._channel_slots()
        pixels = self.y.band[FIRST].min() * self.x.outputs[FIRST].min()
        return np.stack([inputs * self._frames[2][0], weights, outputs * pixels, sums * pixels, parameters])

    # -- beats and bounds -------------------------------------------------------------------------------------------------

    @cached_property
    def _programs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """(code by m, code by p, table by their sum: beats, cycles before the first phase)."""
        by_m, by_y, by_x, table = self.form.program_codes
        codes = (by_y.reshape(-1, 1) * 4 + by_x.reshape(1, -1)).reshape(-1)
        words, beats, first, _ = table.T
        return by_m.reshape(-1) * 16, codes, np.stack([np.where(np.isfinite(words), beats, np.inf), self.form.before_cycles(beats, first)])

    @cached_property
    def _beat_factors(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """beats moved = const[m] + inputs[m] * pixels[p] + again[m] * tiles[p]: the five arrays in this order."""
        c, structure = self.channels, self.structure
        weights_outer = structure.order is Order.WEIGHTS_OUTER
        words = (sum_over(c.input_beats, c.c_count) * c.s_count if structure.words_loop == "C" else sum_over(c.input_beats, c.s_count))
        groups = sum_over(c.groups, c.s_count)
        weights = groups * sum_over(c.records, c.k_count) * sum_over(c.runs, c.c_count)
        parameters = groups * sum_over(c.channels, c.k_count) * self.run.design.parameter_beats
        stored = np.broadcast_to(self.form.stored_beats, (len(c.ts), 1, 1)).reshape(-1)
        const, again = stored, np.zeros(len(c.ts))
        for beats, data, kept in ((weights, WEIGHT_LOOPS, structure.resident and not weights_outer), (parameters, PARAMETER_LOOPS, False)):
            if set(structure.repeats(data, kept)) & PIXEL_LOOPS:
                again = again + beats
            else:
                const = const + beats
        inputs = words.copy()
        for loop in structure.repeats(INPUT_LOOPS, structure.resident and weights_outer):
            inputs = inputs * {"S": c.s_count, "K": c.k_count}[loop]
        batch = self.run.layer.B
        pixels, tiles = self._pairs(self.y.load_sum, self.x.load_sum), self._pairs(self.y.count, self.x.count)
        return const, inputs, batch * pixels, again, batch * tiles

    def beats(self, some: Some) -> Floats:
        """Beats moved in all, program included; infinite where the program does not fit its RAM."""
        const, inputs, pixels, again, tiles = self._beat_factors
        by_m, by_p, table = self._programs
        m, p = some.m, some.p
        result: Floats = const[m] + inputs[m] * pixels[p] + again[m] * tiles[p] + table[0].take(by_m[m] + by_p[p])
        return result

    @cached_property
    def _cycle_factors(self) -> dict[str, Floats]:
        c, layer = self.channels, self.run.layer
        tiles = c.s_count * c.k_count * c.c_count
        spaced = np.maximum(c.vectors, self.run.drain)
        blocks = sum_over(c.groups, c.s_count) * sum_over(c.blocks, c.k_count) * self.run.grouping.passes
        idle = sum_over(spaced - c.vectors, c.c_count) / c.c_count
        last = {loop: LAST for loop in self.structure.loops}
        leaving = c.output_beats[last.get(self.structure.channels_loop, FIRST)]
        return {
            "tiles": tiles,
            "work": blocks * sum_over(spaced, c.c_count) * (layer.B * layer.OX), "band": np.repeat(self.y.band_sum, len(self.x.size)),
            "overhead": tiles * (self.run.fixed_compute_cycles - idle + hardware.PHASE_CHANGE_CYCLES),
            "first": c.groups[FIRST] * (c.records[FIRST] * c.runs[FIRST] + c.channels[FIRST] * self.run.design.parameter_beats),
            "first_word": c.input_beats[FIRST], "first_pixels": self._pairs(self.y.load[FIRST], self.x.load[FIRST]),
            "leaving": leaving, "last_pixels": self._pairs(self.y.outputs[last.get("Y", FIRST)], self.x.outputs[last.get("X", FIRST)]),
        }

    def cycles_bound(self, some: Some, beats: Floats) -> Floats:
        """At most the cycles of each tiling, and close to them: the larger of what the array and what the memory alone would take."""
        f, (_, _, _, _, tiles), timing = self._cycle_factors, self._beat_factors, self.run.timing
        by_m, by_p, table = self._programs
        m, p = some.m, some.p
        pace, latency = timing.den / timing.num, timing.latency_cycles + hardware.MEMORY_START_CYCLES
        code = by_m[m] + by_p[p]
        count, last_beats = tiles[p], f["leaving"][m] * f["last_pixels"][p]
        last = last_beats * pace
        ends = table[1].take(code) + (latency + 1 + hardware.PHASE_CHANGE_CYCLES)
        first = (f["first"][m] + f["first_word"][m] * f["first_pixels"][p]) * pace + (latency + hardware.MEMORY_END_CYCLES)
        array = first + f["work"][m] * f["band"][p] + count * f["overhead"][m]
        phases = count * f["tiles"][m]
        revisited = self.structure.revisiting_loop
        loading = phases
        if revisited is not None:
            loading = phases / (self.channels.k_count[m] if revisited == "K" else count)
        memory = ((beats - table[0].take(code) - last_beats) * pace + loading * (latency + hardware.MEMORY_END_CYCLES)
                  + phases * hardware.PHASE_CHANGE_CYCLES)
        bound: Floats = np.floor(np.maximum(array, memory) + (ends + last) - 1e-3)
        return bound
