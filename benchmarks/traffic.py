"""External bytes of every VGG-16 and ResNet-18 layer beside what no schedule can go below: `python benchmarks/traffic.py`.

Prints the tables of docs/traffic.md. The design is fixed; each layer has the mapping with the fewest bytes of all even tilings, by exact
prediction. Takes about a minute.
"""

from __future__ import annotations

import argparse

import numpy as np

from dse.estimate.bounds import asymptotic_bound_bytes, capacity_bytes, communication_lower_bound_bytes, compulsory_bytes
from dse.schedule.axes import Sizes
from dse.schedule.explore import LayerSpace, Objective
from dse.schedule.search import bank_depths
from dse.workload.zoo import load_network
from hdl.design import Design
from sim.memory import MemoryTiming

DESIGN = Design(rows=8, cols=8, accumulator_bits=32, input_bytes=1 << 17, weight_bytes=1 << 16, output_bytes=1 << 14, psum_bytes=1 << 15,
                bus_bits=32)
TIMING = MemoryTiming(16, 3, 4)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"Design {DESIGN.array} {DESIGN.precision}, bus {DESIGN.bus_bits} bits; "
          f"banks as built hold {capacity_bytes(DESIGN):,} bytes.\n")
    for name in ("vgg16", "resnet18"):
        print(f"### {name}\n\n| layer | bytes moved | compulsory | lower bound | moved / bound | Chen et al. | tiling |\n"
              "|---|---|---|---|---|---|---|")
        totals = [0, 0, 0]
        for layer_name, layer in load_network(name).array_layers().items():
            best = LayerSpace(DESIGN, layer, Sizes.EVEN).best(bank_depths(DESIGN)[None, :], TIMING, Objective.BYTES)
            moved = int(best.beats_read[0] + best.beats_written[0]) * DESIGN.bus_bits // 8
            compulsory, bound = compulsory_bytes(DESIGN, layer), communication_lower_bound_bytes(DESIGN, layer)
            totals = [total + value for total, value in zip(totals, (moved, compulsory, bound), strict=True)]
            tiling = best.tilings[0] if np.all(best.feasible) else "none fits"
            print(f"| {layer_name} | {moved:,} | {compulsory:,} | {bound:,} | {moved / bound:.3f} "
                  f"| {asymptotic_bound_bytes(DESIGN, layer):,} | {tiling} |", flush=True)
        moved, compulsory, bound = totals
        print(f"| **all** | **{moved:,}** | **{compulsory:,}** | **{bound:,}** | **{moved / bound:.3f}** | | |\n")


if __name__ == "__main__":
    main()
