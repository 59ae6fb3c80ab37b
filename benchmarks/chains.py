"""What tensors that stay on chip save, by network: `python benchmarks/chains.py`.

Prints the table of docs/chains.md: exact predictions, equal to what the simulated hardware does. Takes about a minute.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from dse.schedule.chain_graph import collapse_chains, own_mapping
from dse.schedule.chain_search import even_spaces
from dse.schedule.explore import Objective
from dse.workload.line import lines
from dse.workload.zoo import load_network
from hdl.design import Design, Multiplier
from sim.memory import MemoryTiming

TIMING = MemoryTiming(16, 3, 4)
W8A8 = Design(rows=8, cols=8, accumulator_bits=32, weight_bytes=1 << 16, output_bytes=1 << 14, psum_bytes=1 << 15, bus_bits=32,
              chaining=True)
W1A1 = Design(rows=8, cols=64, weight_bits=1, activation_bits=1, accumulator_bits=16, multiplier=Multiplier.LUT, weight_bytes=1 << 16,
              output_bytes=1 << 13, bus_bits=32, chaining=True)
NETWORKS = ("digits-cnn", "alexnet", "vgg16", "resnet18", "resnet50", "mobilenetv2", "googlenet", "lfc")
INPUT_KIB = (32, 128)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    heads = ["network", "lines", "layers in them", *(f"kept with {kib} KiB | bytes saved | cycles saved" for kib in INPUT_KIB)]
    print(f"| {' | '.join(heads)} |\n{'|---' * (3 + 3 * len(INPUT_KIB))}|")
    for name in NETWORKS:
        network = load_network(name)
        found = lines(network)
        cells = [name, str(len(found)), str(sum(map(len, found)))]
        for kib in INPUT_KIB:
            design = (W1A1 if network.precision == "w1a1" else W8A8).with_(input_bytes=kib << 10)
            mapping = own_mapping(design, TIMING, Objective.BOTH)
            choices = [(choice, node.repeat) for node in network.array_operators if (choice := mapping(node)) is not None]
            moved = sum(choice.bytes * times for choice, times in choices)
            cycles = sum(choice.prediction.cycles * times for choice, times in choices)
            graph = collapse_chains(network.graph, design, TIMING, spaces=even_spaces, mapping=mapping)
            kept = sum(len(values["operators"]) - 1 for _, values in graph.nodes(data=True) if "run" in values)
            saved_bytes, saved_cycles = graph.graph["saved_bytes"], graph.graph["saved_cycles"]
            cells.append(f"{kept} | {saved_bytes:,} ({saved_bytes / moved:.1%}) | {saved_cycles:,} ({saved_cycles / cycles:.1%})")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
