"""nearmac: a sweep of arrays of 1,024 MACs and their bank sizes, each point with the best mapping of every layer; 64 bits of memory a
cycle, as ZigZag's here."""

from __future__ import annotations

from dataclasses import replace

from driver import Layers, Stopwatch, read_layers

from boards import load_board
from boards.schema import Board
from dse.sweep.evaluate import evaluate_family
from dse.sweep.family import families
from dse.sweep.space import Space
from dse.sweep.workload import Workload
from hdl.layer import Layer

KIB = 1024
SPACE = {"rows": [8, 16, 32, 64], "cols": "1024 // rows", "bus_bits": 64, "clock_mhz": 100, "output_multiplier": "dsp",
         "input_bytes": [size * KIB for size in (16, 32, 64, 128, 256)], "weight_bytes": [size * KIB for size in (32, 64, 128, 256)],
         "output_bytes": [size * KIB for size in (16, 64, 128)], "psum_bytes": [0, 64 * KIB]}
# The banks of SCALE-Sim here.
SHOWN = {"rows": 32, "cols": 32, "input_bytes": 64 * KIB, "weight_bytes": 64 * KIB, "output_bytes": 64 * KIB, "psum_bytes": 64 * KIB}


def fast_board() -> Board:
    """A VC707 whose memory offers a beat of 64 bits in every cycle at 100 MHz, after 8 cycles."""
    board = load_board("vc707")
    assert board.memory is not None
    figures = {"width_bits": 64, "mt_s": 100, "efficiency": 1.0, "latency_cycles": 8}
    return replace(board, memory=replace(board.memory, **{name: replace(getattr(board.memory, name), value=value)
                                                          for name, value in figures.items()}))


def nearmac_points(layers: Layers) -> tuple[int, int]:
    """(design points, cycles of the workload on the point SHOWN), by the sweep's own functions."""
    shapes = [Layer.conv(K=layer["K"], C=layer["C"], OY=layer["O"], OX=layer["O"], FY=layer["F"], FX=layer["F"], S=layer["S"], P=layer["P"])
              for layer in layers]
    workload = Workload("peers", tuple((f"layer{at}", layer, 1) for at, layer in enumerate(shapes)))
    board, points, cycles = fast_board(), 0, 0
    for family in families(Space.from_dict(SPACE), board, workload):
        rows = evaluate_family(family, workload, board).to_pylist()
        points += len(rows)
        cycles += sum(row["cycles"] for row in rows if all(row[name] == size for name, size in SHOWN.items()))
    return points, cycles


workload = read_layers()
watch = Stopwatch()
points, cycles = nearmac_points(workload)
watch.report(package="nearmac", point="1,024 MACs, bank sizes; best mapping of each layer", points=points, cycles=cycles)
