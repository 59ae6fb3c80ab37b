"""The array against NumPy: every precision, mode and shape, with gaps, padding, masks and extremes; and its DSP blocks."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from amaranth.sim import Simulator

from hdl.array import MacArray, capture_cycles, readout_cycles, result_index
from hdl.design import ELEMENT_BITS, Design

BANKS = {"input_bytes": 1 << 16, "weight_bytes": 1 << 16, "output_bytes": 1 << 16}


def make(array: str, precision: str = "w8a8", **options: Any) -> Design:
    rows, cols, lanes = map(int, array.split("x"))
    weight_bits, activation_bits = map(int, re.findall(r"\d+", precision))
    options = {"accumulator_bits": 40, "multiplier": "lut", "bus_bits": 64, **BANKS, **options}
    return Design(rows=rows, cols=cols, lanes=lanes, weight_bits=weight_bits, activation_bits=activation_bits, **options)


@dataclass
class Reduction:
    """Raw words of one reduction, and what each (lane, row) must add up to."""

    weights: np.ndarray  # (length, rows, cols) raw codes
    activations: np.ndarray  # (length, lanes, cols) raw codes
    padding: np.ndarray  # (length, lanes) bool
    columns: np.ndarray  # (length, rows, cols) bool
    expected: np.ndarray  # (lanes, rows)
    gaps: list[int] = field(default_factory=list)  # idle cycles before each vector


def values(codes: np.ndarray, bits: int, signed: bool) -> np.ndarray:
    codes = codes.astype(np.int64)
    if bits == 1:
        return 2 * codes - 1
    return np.where(codes >= 1 << (bits - 1), codes - (1 << bits), codes) if signed else codes


def reduction(rng: np.random.Generator, design: Design, length: int, *, signed: bool = False, zero_point: int = 0,
              extreme: int | None = None, gap: float = 0.0) -> Reduction:
    shape_w, shape_a = (length, design.rows, design.cols), (length, design.lanes, design.cols)
    weights = rng.integers(0, 1 << design.weight_bits, shape_w)
    activations = rng.integers(0, 1 << design.activation_bits, shape_a)
    padding = rng.random((length, design.lanes)) < 0.25
    columns = rng.random(shape_w) < 0.8
    if design.is_xnor:  # every row has the same channels: the first `count`
        count = rng.integers(0, design.cols + 1, length)
        columns[:] = (np.arange(design.cols)[None, :] < count[:, None])[:, None, :]
        weights = np.where(columns, weights, 1)
        activations = np.where(columns[:, :1], activations, 0)
    if extreme is not None:  # the most negative weights with the extreme activations, everything counted
        weights[:] = 1 << (design.weight_bits - 1) if design.weight_bits > 1 else extreme & 1
        activations[:] = extreme
        padding[:] = False
        columns[:] = True
    w = values(weights, design.weight_bits, True)
    a = values(activations, design.activation_bits, signed) - (zero_point if design.activation_bits > 1 else 0)
    a = a * ~padding[:, :, None]
    expected = np.einsum("trc,tlc->lr", w * columns, a)
    gaps = [int(rng.integers(1, 4)) if rng.random() < gap else 0 for _ in range(length)]
    return Reduction(weights, activations, padding, columns, expected, gaps)


def pack(codes: np.ndarray, bits: int) -> int:
    return sum(int(code) << (i * bits) for i, code in enumerate(codes))


def run(design: Design, reductions: list[Reduction], *, signed: bool = False, zero_point: int = 0) -> None:
    """Issue the reductions; check strobe cycles, and read every result of the last and of each one that lasts long enough."""
    dut = MacArray(design=design)
    rng = np.random.default_rng(5)
    noise = rng.integers(0, 1 << 62, 64)
    strobes: list[int] = []
    due: list[int] = []
    read: dict[int, np.ndarray] = {}
    issued: list[tuple[Reduction, int] | None] = []
    for number, item in enumerate(reductions):
        for t in range(len(item.gaps)):
            issued += [None] * item.gaps[t]
            if t == len(item.gaps) - 1:
                due.append(len(issued) + dut.capture_cycles)
            issued.append((item, t))
        # leave time to read some results before the next capture: all if it is late enough
        if number % 3 == 2:
            issued += [None] * (design.drain_steps + 1)
    total = len(issued) + dut.capture_cycles + design.drain_steps + dut.readout_cycles + 2

    async def issue(ctx: Any) -> None:
        if not design.is_xnor:
            ctx.set(dut.zero_point, zero_point)
            ctx.set(dut.signed_activations, int(signed))
        for cycle, slot in enumerate(issued):
            item, t = slot or (reductions[0], 0)
            valid = slot is not None
            junk = int(noise[cycle % 64])
            ctx.set(dut.i_valid, int(valid))
            ctx.set(dut.i_first, int(t == 0) if valid else junk & 1)
            ctx.set(dut.i_last, int(t == len(item.gaps) - 1) if valid else junk >> 1 & 1)
            ctx.set(dut.i_padding, pack(item.padding[t], 1) if valid else junk >> 2 & 1)
            for r in range(design.rows):
                ctx.set(dut.weights[r], pack(item.weights[t, r], design.weight_bits) if valid else junk & 1)
                if not design.is_xnor:
                    ctx.set(dut.i_columns[r], pack(item.columns[t, r], 1))
            if design.is_xnor:
                ctx.set(dut.i_count, int(item.columns[t, 0].sum()))
            for lane in range(design.lanes):
                ctx.set(dut.activations[lane], pack(item.activations[t, lane], design.activation_bits) if valid else 0)
            await ctx.tick()
        ctx.set(dut.i_valid, 0)

    async def drain(ctx: Any) -> None:
        pending: list[tuple[int, int, int]] = []  # cycle due, reduction, step
        step = design.drain_steps
        for cycle in range(total):
            if cycle in due_cycles:
                step = 0
            if step < design.drain_steps:
                ctx.set(dut.drain_step, step)
                pending.append((cycle + dut.readout_cycles, due_cycles[max(c for c in due_cycles if c <= cycle)], step))
                step += 1
            else:
                ctx.set(dut.drain_step, 0)
            captured, results = (await ctx.tick().sample(dut.o_captured, dut.o_results))[2:]
            if captured:
                strobes.append(cycle)
            while pending and pending[0][0] == cycle:
                _, number, at = pending.pop(0)
                for d in range(design.drains):
                    lane, row = result_index(design, d, at)
                    read.setdefault(number, np.full((design.lanes, design.rows), np.nan))[lane, row] = results[d]

    due_cycles = {cycle: number for number, cycle in enumerate(due)}
    assert len(due_cycles) == len(due)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(issue)
    sim.add_testbench(drain)
    sim.run()
    assert strobes == due
    complete = 0
    for number, item in enumerate(reductions):
        got = read[number]
        seen = ~np.isnan(got)
        assert seen.any()
        complete += bool(seen.all())
        np.testing.assert_array_equal(got[seen], item.expected[seen], err_msg=f"reduction {number}")
    assert complete >= (len(reductions) + 1) // 3


def exercise(design: Design, *, seed: int = 1, signed: bool = False, zero_point: int | None = None) -> None:
    rng = np.random.default_rng(seed)
    bits = design.activation_bits
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if zero_point is None:
        zero_point = int(rng.integers(low, high + 1)) if bits > 1 else 0
    options = {"signed": signed, "zero_point": zero_point}
    lengths = [1, 2, 1, 1, 5, 3, 4, 9]
    items = [reduction(rng, design, n, gap=0.0 if i < 4 else 0.4, **options) for i, n in enumerate(lengths)]
    codes = (0, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1)
    items += [reduction(rng, design, 4, extreme=code, **options) for code in codes[:2 if bits == 1 else 4]]
    run(design, items, **options)


PRECISIONS = [f"w{w}a{a}" for w in ELEMENT_BITS for a in ELEMENT_BITS]


# XNOR has no columns' sums.
STYLES = [(p, a) for p in PRECISIONS for a in ("tree", "per_column") if (p, a) != ("w1a1", "per_column")]


@pytest.mark.parametrize(("precision", "accumulate"), STYLES)
def test_precisions(precision: str, accumulate: str) -> None:
    design = make("2x2x1" if "16" not in precision else "1x1x1", precision, accumulate=accumulate)
    exercise(design, signed=accumulate == "tree")
    if design.product_bits >= 9:
        exercise(make("1x2x2", precision, accumulate=accumulate, multiplier="dsp"), signed=accumulate == "per_column")
        if design.pair_operand_bits <= 27:
            exercise(make("2x2x1", precision, accumulate=accumulate, multiplier="dsp_pair", family="xcup"), seed=2)


@pytest.mark.parametrize("array", ["1x1x1", "3x5x2", "4x4x1", "5x3x3", "2x16x2", "1x1x5", "17x1x1"])
@pytest.mark.parametrize("options", [{"multiplier": "dsp"}, {"multiplier": "dsp", "accumulate": "per_column"},
                                     {"multiplier": "lut", "precision": "w2a2"}, {"precision": "w1a1"}],
                         ids=["tree", "per_column", "lut", "xnor"])
def test_shapes(array: str, options: dict[str, Any]) -> None:
    exercise(make(array, **options), seed=7)


@pytest.mark.parametrize("array", ["2x5x2", "4x4x1", "6x3x3", "2x1x5"])
def test_shapes_of_pairs(array: str) -> None:
    exercise(make(array, "w4a4", multiplier="dsp_pair"), seed=7)


@pytest.mark.parametrize(("drains", "options"), [
    *((drains, {"multiplier": "dsp"}) for drains in (1, 2, 4, 8, 16)),
    *((drains, {"multiplier": "dsp", "accumulate": "per_column"}) for drains in (2, 8)),
    *((drains, {"precision": "w1a1"}) for drains in (2, 16))])
def test_drains(drains: int, options: dict[str, Any]) -> None:
    exercise(make("4x4x4", **options, drains=drains))


@pytest.mark.parametrize(("signed", "zero_point"), [(False, 0), (False, 255), (True, -128), (True, 127)])
def test_zero_point_extremes(signed: bool, zero_point: int) -> None:
    exercise(make("2x2x1", multiplier="dsp"), signed=signed, zero_point=zero_point)
    exercise(make("2x2x1", multiplier="dsp_pair", family="xc7"), signed=signed, zero_point=zero_point)


def test_widest_products_fill_48_bits() -> None:
    exercise(make("1x2x1", "w16a16", multiplier="dsp", accumulator_bits=48), signed=True, zero_point=32767)


@pytest.mark.parametrize("options", [{}, {"accumulate": "per_column"}], ids=["tree", "per_column"])
def test_partial_sums_may_wrap(options: dict[str, Any]) -> None:
    design = make("1x2x1", accumulator_bits=18, **options)
    rng = np.random.default_rng(0)
    item = reduction(rng, design, 40, extreme=255)
    item.weights[20:] = 127
    item.expected[:] = 255 * 2 * 20 * (127 - 128)
    run(design, [item])


def test_reset_discards_what_is_in_flight() -> None:
    design = make("1x1x1")
    dut = MacArray(design=design)
    reset = Signal()

    async def bench(ctx: Any) -> None:
        ctx.set(dut.i_valid, 1)
        ctx.set(dut.i_last, 1)
        await ctx.tick()
        ctx.set(dut.i_valid, 0)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        for _ in range(10):
            assert not (await ctx.tick().sample(dut.o_captured))[-1]

    sim = Simulator(ResetInserter(reset)(dut))
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


def test_latencies() -> None:
    assert [capture_cycles(make("1x1x1")), capture_cycles(make("1x5x1")), capture_cycles(make("1x16x1"))] == [4, 7, 8]
    assert capture_cycles(make("2x16x1", accumulate="per_column")) == 4
    assert [readout_cycles(make(a)) for a in ("1x1x1", "16x1x1", "17x1x1", "64x1x5")] == [1, 1, 2, 3]
    assert readout_cycles(make("2x16x1", accumulate="per_column")) == 5
    assert readout_cycles(make("2x16x1", "w1a1")) == 2
    assert capture_cycles(make("2x5x1", "w4a4", multiplier="dsp_pair")) == 8
    dut = MacArray(design=make("1x5x1"))
    assert (dut.capture_cycles, dut.readout_cycles) == (7, 1)


def test_result_index_reaches_every_result_once() -> None:
    for lanes, rows in ((1, 4), (4, 4), (6, 2), (3, 8)):
        base = make(f"{rows}x8x{lanes}", "w2a2")
        for drains in base.legal_drains():
            design = base.with_(drains=drains)
            seen = sorted(result_index(design, d, s) for d in range(drains) for s in range(design.drain_steps))
            assert seen == [(lane, row) for lane in range(lanes) for row in range(rows)]


SYNTH = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""


class Arrays(wiring.Component):
    """Several arrays side by side, so that the tool starts once."""

    def __init__(self, designs: list[Design]):
        self._arrays = [MacArray(design=design) for design in designs]
        super().__init__({f"array{i}": Out(array.signature) for i, array in enumerate(self._arrays)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for i, array in enumerate(self._arrays):
            m.submodules[f"dut{i}"] = array
            wiring.connect(m, wiring.flipped(getattr(self, f"array{i}")), array)
        return m


def test_one_dsp_block_a_product(tmp_path: Path) -> None:
    pytest.importorskip("pyosys")
    designs = [make("4x4x1", multiplier="dsp", accumulator_bits=32),
               make("4x4x1", multiplier="dsp", accumulator_bits=32, accumulate="per_column"),
               make("2x2x1", "w16a16", multiplier="dsp", accumulator_bits=48),
               make("2x2x1", "w4a4", multiplier="dsp"), make("1x2x2", "w8a1", multiplier="dsp"),
               make("1x2x2", "w1a8", multiplier="dsp", accumulate="per_column"),
               make("1x2x1"), make("2x8x1", "w1a1")]
    (tmp_path / "x.il").write_text(rtlil.convert(Arrays(designs), emit_src=False))
    commands = ["read_rtlil x.il", "synth_xilinx -family xc6s -flatten -noiopad -top top -run begin:map_memory",
                "tee -q -o cells.txt select -list top/t:DSP48A1"]
    done = subprocess.run([sys.executable, "-c", SYNTH, *commands], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    owners = re.findall(r"\bdut(\d+)\.", (tmp_path / "cells.txt").read_text())
    assert [owners.count(str(i)) for i in range(len(designs))] == [16, 16, 4, 4, 4, 4, 0, 0]
    assert [design.array_dsps for design in designs] == [16, 16, 4, 4, 4, 4, 0, 0]
