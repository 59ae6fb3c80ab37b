"""Area of the accelerator of a Spartan-6 LX9, by Yosys: the whole, and its parts.

``python benchmarks/area.py [--counters] [--no-parts]``, from the project's folder; needs the extra ``synth``; minutes.

The whole is synthesised flattened. Each part is synthesised by itself, flattened, its ports being pins: that counts what part of the
whole it is only about, because synthesis shares and drops logic across the borders of parts, so the sum differs from the whole.
"Neither array nor banks" is the whole less the array's part: banks are block RAM and have no look-up tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from amaranth.lib import wiring

from hdl.accelerator import Accelerator
from hdl.array import MacArray
from hdl.design import Design
from hdl.drain import DrainUnit, drain_cycles, output_unit
from hdl.issue import IssueUnit
from hdl.load import LoadUnit
from hdl.request import RequestUnit, StoreUnit
from hdl.sequencer import Evaluator, FieldFile
from hdl.synthesis import Cells, synthesise

LX9 = Design(rows=4, cols=4, lanes=1, input_bytes=32768, weight_bytes=16384, output_bytes=2048, psum_bytes=0, bus_bits=16,
             accumulator_bits=32, multiplier="dsp", output_multiplier="serial", counters=False)


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
        "  output stage": lambda: output_unit(design).create(),
    }


def line(name: str, cells: Cells) -> str:
    values = (cells.luts, cells.inverters, cells.lut_rams, cells.flip_flops, cells.carries, cells.dsps, cells.block_rams)
    return f"{name:28}" + "".join(f"{value:9,}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counters", action="store_true", help="with the performance counters")
    parser.add_argument("--no-parts", action="store_true", help="the whole and the array only")
    options = parser.parse_args()
    design = LX9.with_(counters=options.counters)
    print(f"{design.array} {design.precision}, accumulators of {design.accumulator_bits} bits")
    print(f"{'':28}" + "".join(f"{title:>9}" for title in ("LUT", "INV", "SRL", "FF", "CARRY4", "DSP48A1", "RAMB16")))
    measured = {}
    for name, make in parts(design).items():
        if name == "array" or not options.no_parts:
            measured[name] = synthesise(make())[""]
            print(line(name, measured[name]), flush=True)
    whole = synthesise(Accelerator(design))[""]
    print(line("whole", whole))
    print(f"{'neither array nor banks':28}{whole.luts - measured['array'].luts:9,}")


if __name__ == "__main__":
    main()
