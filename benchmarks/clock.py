"""The clock that whole accelerators reach, by Yosys and nextpnr: `python benchmarks/clock.py [--only N] [--seeds 5] [--folder DIR]`

From the project's folder; needs the extra `synth`; a quarter of an hour a design. Prints the table of `docs/clock.md`; with `--folder`,
logs and reports stay.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from hdl.accelerator import Accelerator
from hdl.design import Design
from hdl.errors import ToolError
from hdl.place_and_route import CELLS, Placement, find_part, place_and_route

DESIGNS: list[tuple[str, Design, float]] = [
    # (part, design, MHz asked for)
    ("lfe5u-25f-6", Design(rows=4, cols=4, family="ecp5", input_bytes=16384, weight_bytes=16384, output_bytes=2048, counters=False), 100),
    ("ice40up5k-sg48", Design(rows=2, cols=4, family="ice40", input_bytes=2048, weight_bytes=4096, output_bytes=2048, counters=False), 36),
]


def row(part: str, design: Design, placements: list[Placement]) -> str:
    best = max(placements, key=lambda placement: placement.clock_mhz)
    cells = ", ".join(f"{best.used[cell]:,} of {best.available[cell]:,} {name}s" for cell, name in CELLS.items() if cell in best.used)
    path = best.critical_path
    ends = f"`{path[0].source}` to `{path[-1].target}`, {sum(step.kind == 'logic' and step.delay_ns > 0.1 for step in path)} levels"
    wires = sum(step.delay_ns for step in path if step.kind == "routing") / sum(step.delay_ns for step in path)
    clocks = ", ".join(f"{placement.clock_mhz:.1f}" for placement in placements)
    return (f"| {find_part(part).title} | {design.array} {design.precision} | {clocks} | **{best.clock_mhz:.1f}** | {cells} "
            f"| {ends}, {wires:.0%} wires |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, help="number of one design, from 0")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where Verilog, netlists, logs and reports stay")
    options = parser.parse_args()
    print("| device | accelerator | MHz, seed by seed | best | used | slowest path of the best |\n|---|---|---|---|---|---|")
    failed = 0
    for number, (name, design, target) in enumerate(DESIGNS):
        if options.only in (None, number):
            with tempfile.TemporaryDirectory(prefix="nearmac-clock-") as temporary:
                folder = options.folder / str(number) if options.folder else Path(temporary)
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    seeds = range(1, options.seeds + 1)
                    placements = place_and_route(Accelerator(design), find_part(name), target_mhz=target, seeds=seeds, folder=folder)
                    print(row(name, design, list(placements)), flush=True)
                except ToolError as error:
                    failed += 1
                    print(f"{name}, {design.array}: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
