"""Reference layers on papilio-pro: how close the simulated hardware comes to its bounds. `python benchmarks/layers.py`

Columns: simulated cycles (equal to the prediction, or the run fails), the share of them that issues, the share of the offered bandwidth
that is used, and cycles over the bound: (cycles - first load - last store) / max(compute, memory, drain bound).
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from boards.loader import load_board
from dse.simulate import choose, simulate
from dse.workload.grammar import parse_layer
from hdl.design import parse_array, parse_precision

LAYERS: list[tuple[str, str, dict[str, Any]]] = [
    # (layer, precision, fixed design options)
    ("conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 S=1 P=1", "w8a8", {"array": "4x4x1"}),
    ("conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 S=1 P=1", "w1a1", {}),
    ("conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 S=1 P=1", "w1a1", {"array": "8x64x2"}),
    ("linear K=1000 C=4096", "w8a8", {}),
    ("conv K=64 C=3 IY=224 IX=224 FY=7 FX=7 S=2 P=3", "w8a8", {}),
    ("conv K=32 C=32 IY=224 IX=224 FY=3 FX=3 P=1", "w8a8", {"array": "4x4x1"}),
    ("conv K=64 C=64 OY=56 OX=56 FY=1 FX=1", "w8a8", {}),
    ("conv K=64 C=64 OY=56 OX=56 FY=1 FX=1", "w8a8", {"array": "4x4x1"}),
    ("conv K=128 C=64 IY=56 IX=56 FY=1 FX=1 S=2", "w8a8", {}),
    ("conv K=32 C=32 G=32 OY=112 OX=112 FY=3 FX=3 P=1", "w8a8", {}),
    ("conv K=32 C=32 G=32 OY=112 OX=112 FY=3 FX=3 P=1", "w8a8", {"array": "4x4x1"}),
    ("conv K=64 C=64 OY=28 OX=28 FY=3 FX=3 P=1", "w4a4", {"array": "4x4x1"}),
    ("conv K=256 C=256 OY=14 OX=14 FY=3 FX=3 P=1", "w1a1", {}),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="papilio-pro")
    parser.add_argument("--only", type=int, help="number of one layer, from 0")
    arguments = parser.parse_args()
    board = load_board(arguments.board)
    print("| layer | precision | array | block RAM | cycles | issue | bandwidth used | bound | cycles / bound |")
    print("|---|---|---|---|---|---|---|---|---|")
    wrong = 0
    rows = LAYERS if arguments.only is None else [LAYERS[arguments.only]]
    for text, precision, given in rows:
        layer, (weight_bits, activation_bits) = parse_layer(text), parse_precision(precision)
        options = dict(zip(("rows", "cols", "lanes"), parse_array(given["array"]), strict=True)) if "array" in given else {}
        choice = choose(layer, board, weight_bits=weight_bits, activation_bits=activation_bits, options=options)
        report, _ = simulate(layer, board, choice)
        data, prediction = report.to_dict(), choice.prediction
        kind, bound = prediction.bound
        ratio = (report.cycles - prediction.first_load_cycles - prediction.last_store_cycles) / bound
        used = data["external_mb_s"] / board.offered_mb_s
        wrong += not report.matches
        print(f"| {text} | {precision} | {report.design.array} | {report.design.block_rams} | {report.cycles:,}"
              f"{'' if report.matches else ' MISMATCH'} | {data['issue_fraction']:.1%} | {used:.1%} | {kind} {bound:,} | {ratio:.4f} |",
              flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
