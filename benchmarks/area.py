"""Area by Yosys: the tables of docs/resources.md.

``python benchmarks/area.py TABLE [--family F] [--counters] [--no-parts]``, from the project's folder; needs the extra ``synth``; minutes.

* ``lx9``: the accelerator of a Spartan-6 LX9, and its parts.
* ``w8a8``: whole accelerators of 32, 64 and 128 multiply-accumulates.
* ``xnor``: matching columns, what a row and lane make of them, and an array.
* ``multipliers``: an array's products in DSP blocks, two in a block, and in look-up tables.
* ``claim``: a 32-bit multiplier and four 16-bit multiply-adds, with DSP blocks and without.
* ``blocks``: DSP blocks, block RAMs and distributed RAM of random designs of every family, counted and synthesised.

Everything is synthesised flattened, ports being pins. That counts what a part of a whole is only about, because synthesis shares and drops
logic across the borders of parts, so the sum of parts differs from the whole. "Neither array nor banks" is the whole less the array by
itself: banks are block RAM and have no look-up tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent.parent))

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from boards.primitives import FAMILIES, Family
from hdl.accelerator import Accelerator
from hdl.array import MacArray
from hdl.design import Design, Multiplier
from hdl.drain import DrainUnit, drain_cycles, output_unit
from hdl.errors import InputError
from hdl.issue import IssueUnit
from hdl.load import LoadUnit
from hdl.mac import XnorUnit
from hdl.multiply import LutMultiplier
from hdl.popcount import MatchCounter
from hdl.request import RequestUnit, StoreUnit
from hdl.sequencer import Evaluator, FieldFile
from hdl.synthesis import BLOCKS, Cells, synthesise

LX9 = Design(rows=4, cols=4, lanes=1, input_bytes=32768, weight_bytes=16384, output_bytes=2048, psum_bytes=0, bus_bits=16,
             accumulator_bits=32, multiplier="dsp", output_multiplier="serial", counters=False)
LARGER = LX9.with_(input_bytes=65536, weight_bytes=65536, output_bytes=8192, bus_bits=32)
W8A8_ARRAYS = ((8, 4, 1), (8, 8, 1), (16, 8, 1))
XNOR = Design(rows=4, cols=128, weight_bits=1, activation_bits=1, multiplier="lut", accumulator_bits=16, input_bytes=16384,
              weight_bytes=65536, output_bytes=2048, bus_bits=32, counters=False)
PRECISIONS = ((2, 2), (4, 4), (4, 8), (8, 8))
COLUMNS = ("LUT", "INV", "LUT-RAM, SRL", "FF", "carry", "DSP", "block RAM")


def values(cells: Cells) -> tuple[int, ...]:
    return (cells.luts, cells.inverters, cells.lut_rams, cells.flip_flops, cells.carries, cells.dsps, cells.block_rams)


def row(*fields: object) -> None:
    """A row of a Markdown table."""
    print("| " + " | ".join(f"{field:,}" if isinstance(field, int) else f"{field:.2f}" if isinstance(field, float) else str(field)
                            for field in fields) + " |", flush=True)


def heading(*titles: str) -> None:
    row(*titles)
    row(*["---"] * len(titles))


def whole(component: wiring.Component, family: Family, *, dsps: bool = True) -> Cells:
    return synthesise(component, family=family, dsps=dsps)[""]


def parts(design: Design) -> dict[str, Callable[[], wiring.Component]]:
    """What the accelerator is made of, banks of the array aside."""
    return {
        "array": lambda: MacArray(design=design),
        "evaluator": lambda: Evaluator(design=design),
        "field file": lambda: FieldFile(design=design),
        "requests": lambda: RequestUnit(design=design),
        "load": lambda: LoadUnit(design=design),
        "store": lambda: StoreUnit(design=design),
        "issue": lambda: IssueUnit(design=design, drain_cycles=drain_cycles(design)),
        "drain": lambda: DrainUnit(design=design),
        "of it the output stage": lambda: output_unit(design).create(),
    }


def lx9(options: argparse.Namespace) -> None:
    design = LX9.with_(counters=options.counters)
    print(f"{design.array} {design.precision}, accumulators of {design.accumulator_bits} bits\n")
    heading("part", *COLUMNS)
    array = None
    for name, make in parts(design).items():
        if name == "array" or not options.no_parts:
            cells = whole(make(), design.family)
            array = array or cells
            row(name, *values(cells))
    cells = whole(Accelerator(design), design.family)
    row("whole", *values(cells))
    row("neither array nor banks", cells.luts - (array.luts if array else 0), *[""] * (len(COLUMNS) - 1))


def w8a8(options: argparse.Namespace) -> None:
    heading("array", "MACs", "family", "LUT", "FF", "DSP", "block RAM", "LUT/MAC", "array alone: LUT", "FF")
    for rows, cols, lanes in W8A8_ARRAYS:
        design = LARGER.with_(rows=rows, cols=cols, lanes=lanes, family=options.family)
        array, cells = whole(MacArray(design=design), design.family), whole(Accelerator(design), design.family)
        row(design.array, design.macs_per_cycle, design.family, cells.luts, cells.flip_flops, cells.dsps, cells.block_rams,
            cells.luts / design.macs_per_cycle, array.luts, array.flip_flops)


def xnor(options: argparse.Namespace) -> None:
    inputs = FAMILIES[options.family].lut_inputs
    heading("columns", "family", "LUT", "FF", "LUT/column", "row and lane: LUT", "SRL", "FF", "LUT/column", "FF/column")
    for cols in (32, 64, 96, 128, 192):
        design = XNOR.with_(cols=cols, family=options.family)
        counter, unit = whole(MatchCounter(bits=cols, lut_inputs=inputs), design.family), whole(XnorUnit(design=design), design.family)
        row(cols, design.family, counter.luts, counter.flip_flops, counter.luts / cols, unit.luts, unit.lut_rams, unit.flip_flops,
            (unit.luts + unit.lut_rams) / cols, unit.flip_flops / cols)
    design = XNOR.with_(family=options.family)
    array = whole(MacArray(design=design), design.family)
    print(f"\n{design.array} array with operand registers and readout: {array.luts} LUT, {array.lut_rams} SRL, {array.flip_flops} FF: "
          f"{(array.luts + array.lut_rams) / design.macs_per_cycle:.2f} LUT and {array.flip_flops / design.macs_per_cycle:.2f} FF a MAC")


def multipliers(options: argparse.Namespace) -> None:
    heading("precision", "products", "family", "LUT", "FF", "DSP", "LUT/MAC")
    for weight_bits, activation_bits in PRECISIONS:
        for multiplier in Multiplier:
            try:
                design = LX9.with_(weight_bits=weight_bits, activation_bits=activation_bits, multiplier=multiplier, rows=8,
                                   accumulator_bits=24, family=options.family)
            except InputError:
                continue
            cells = whole(MacArray(design=design), design.family)
            row(design.precision, multiplier, design.family, cells.luts, cells.flip_flops, cells.dsps, cells.luts / design.macs_per_cycle)


class MultiplyAdd(wiring.Component):
    """``units`` products of ``bits`` x ``bits`` with registers on both sides, each summed in ``total_bits`` unless that is 0."""

    def __init__(self, *, bits: int, units: int = 1, total_bits: int = 0) -> None:
        self._total_bits = total_bits
        super().__init__({"i_a": In(signed(bits)).array(units), "i_b": In(signed(bits)).array(units), "i_first": In(1),
                          "o_result": Out(signed(total_bits or 2 * bits)).array(units)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for n, (a, b, result) in enumerate(zip(self.i_a, self.i_b, self.o_result, strict=True)):
            a_in, b_in = Signal.like(a, name=f"a_{n}"), Signal.like(b, name=f"b_{n}")
            product = Signal(signed(2 * len(a)), name=f"product_{n}")
            m.d.sync += [a_in.eq(a), b_in.eq(b), product.eq(a_in * b_in)]
            if not self._total_bits:
                m.d.comb += result.eq(product)
                continue
            total = Signal.like(result, name=f"total_{n}")
            with m.If(self.i_first):
                m.d.sync += total.eq(product)
            with m.Else():
                m.d.sync += total.eq(total + product)
            m.d.comb += result.eq(total)
        return m


def claim(options: argparse.Namespace) -> None:
    lx9_luts, lx9_dsps = 5720, 16  # boards/devices/xc6slx9.yaml
    heading("what", "LUT", "of an LX9's", "FF", "DSP", "of an LX9's")
    for name, component, dsps in (
            ("32 x 32 bits, DSP blocks", MultiplyAdd(bits=32), True), ("32 x 32 bits, look-up tables alone", MultiplyAdd(bits=32), False),
            ("32 x 32 bits, our rows of Booth digits", LutMultiplier(a_bits=32, b_bits=32, stages=4), True),
            ("four 16-bit multiply-adds, DSP blocks", MultiplyAdd(bits=16, units=4, total_bits=48), True),
            ("four 16-bit multiply-adds, look-up tables alone", MultiplyAdd(bits=16, units=4, total_bits=48), False)):
        cells = whole(component, Family.SPARTAN6, dsps=dsps)
        row(name, cells.luts, f"{cells.luts / lx9_luts:.0%}", cells.flip_flops, cells.dsps, f"{cells.dsps / lx9_dsps:.0%}")


def random_design(random: Random, family: Family) -> Design:
    """A small design of any style that the family has."""
    while True:
        options = {
            "rows": random.choice((1, 2, 3, 4)), "cols": random.choice((1, 2, 3, 4, 8)), "lanes": random.choice((1, 2, 3)),
            "weight_bits": random.choice((1, 2, 4, 8, 16)), "activation_bits": random.choice((1, 2, 4, 8, 16)),
            "accumulator_bits": random.randint(20, 48), "multiplier": random.choice(list(Multiplier)),
            "accumulate": random.choice(("tree", "per_column")), "output_multiplier": random.choice(("serial", "dsp", "lut")),
            "input_bytes": random.choice((64, 1024, 8192, 65536)), "weight_bytes": random.choice((64, 2048, 16384)),
            "output_bytes": random.choice((64, 1024, 4096)), "psum_bytes": random.choice((0, 256, 4096)),
            "bus_bits": random.choice((16, 32, 64)), "distributed_depth": random.choice((0, 0, 32, 64)), "counters": False}
        options["drains"] = random.choice((1, options["lanes"]))
        try:
            return Design(**options, family=family)
        except InputError:
            continue


def blocks(options: argparse.Namespace) -> None:
    random, wrong = Random(options.seed), 0
    heading("family", "design", "DSP", "counted", "block RAM", "counted", "distributed RAM", "counted")
    for family in Family:
        for _ in range(options.designs):
            design = random_design(random, family)
            cells = synthesise(Accelerator(design), family=family, run=BLOCKS)[""]
            got, counted = ((cells.dsps, cells.block_rams, cells.distributed_rams),
                            (design.dsps, design.block_rams, design.distributed_rams))
            wrong += got != counted or cells.half_block_rams > 0
            row(family, f"{design.array} {design.precision} {design.multiplier}, {design.output_multiplier} output",
                *(number for pair in zip(got, counted, strict=True) for number in pair))
            if got != counted:
                print(design)
    print(f"\n{wrong} of {options.designs * len(Family)} differ")
    if wrong:
        raise SystemExit(1)


TABLES = {"lx9": lx9, "w8a8": w8a8, "xnor": xnor, "multipliers": multipliers, "claim": claim, "blocks": blocks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", nargs="?", choices=TABLES, default="lx9")
    parser.add_argument("--family", type=Family, choices=list(Family), default=Family.SERIES7, help="for w8a8, xnor and multipliers")
    parser.add_argument("--designs", type=int, default=4, help="of each family, for blocks")
    parser.add_argument("--seed", type=int, default=0, help="for blocks")
    parser.add_argument("--counters", action="store_true", help="lx9: with the performance counters")
    parser.add_argument("--no-parts", action="store_true", help="lx9: the whole and the array only")
    options = parser.parse_args()
    TABLES[options.table](options)


if __name__ == "__main__":
    main()
