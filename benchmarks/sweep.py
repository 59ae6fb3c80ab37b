"""How fast and how small a sweep is: `python benchmarks/sweep.py` (docs/benchmarks.md has the last run).

Prints, for one process and for all processors together:

* exact evaluations a second: cycles and bytes of (design, layer, tiling) as arrays, one number each for every even tiling of every distinct
  layer of ResNet-18 on every design point (arrays, output multipliers and clocks of ARRAYS and CLOCKS_MHZ), by the compiled kernel and, on
  one layer in twelve, by NumPy. All set-up is in the time, but for starting the processes and compiling the kernel;
* tilings decided a second (fitting or not, best or not) and design points a second: the optimum of every ResNet-18 layer for every bank
  configuration of families drawn from the default space of a board;
* the whole sweep of that space, and of one in which many points differ in banks and clock, as the command does it: start, listing the
  points, files written and the table printed;
* with --million: time and peak memory of a sweep of a million points, files written.

`benchmarks/startup.py` takes the start of the commands.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from boards import load_board
from boards.schema import Board
from dse.choose import board_timing
from dse.schedule.axes import Sizes
from dse.schedule.closed_form import Run
from dse.schedule.explore import LayerSpace
from dse.schedule.grid import evaluate_grids
from dse.sweep.evaluate import evaluate_family
from dse.sweep.family import Family, families
from dse.sweep.space import default_space
from dse.sweep.workload import Workload
from dse.workload.zoo import load_network
from hdl.design import Design
from sim.memory import MemoryTiming

ARRAYS = ((4, 4, 1), (8, 8, 1), (8, 4, 2), (16, 1, 1))
CLOCKS_MHZ = (60, 80, 100, 120)


def resnet18() -> Workload:
    network = load_network("resnet18")
    return Workload("resnet18", tuple((name, layer, 1) for name, layer in network.array_layers().items()))


def evaluate_grids_of(job: tuple[tuple[int, int, int], bool]) -> int:
    """How many (design, layer, tiling): every even tiling of ResNet-18's distinct layers on the design points of an array."""
    (rows, cols, lanes), compiled = job
    count, board = 0, load_board("papilio-pro")
    layers = list(dict.fromkeys(layer for _, layer, _ in resnet18().layers))
    for output, clock in itertools.product(("serial", "dsp"), CLOCKS_MHZ):
        design = Design(rows=rows, cols=cols, lanes=lanes, psum_bytes=4096, input_bytes=lanes * 65536, output_multiplier=output,
                        clock_mhz=clock)
        timing = board_timing(board, design)
        for layer in layers if compiled else layers[5:6]:
            for grid in evaluate_grids(Run(design, layer, timing), compiled=compiled):
                assert grid.cycles.shape == grid.beats_read.shape
                count += grid.cycles.size
    return count


def evaluate(job: tuple[list[Family], Board]) -> tuple[int, int, float]:
    """(points, mappings found, seconds) of some families on ResNet-18."""
    workload = resnet18()
    began = time.perf_counter()
    tables = [evaluate_family(family, workload, job[1]) for family in job[0]]
    return sum(map(len, job[0])), sum(sum(table["feasible"].to_pylist()) for table in tables), time.perf_counter() - began


def report_grids(workers: int) -> None:
    for compiled, processes in ((False, 1), *((True, processes) for processes in dict.fromkeys((1, workers)))):
        jobs = [(array, compiled) for array in ARRAYS]
        with ProcessPoolExecutor(processes) as pool:
            list(pool.map(evaluate_grids_of, jobs[:1] * processes))  # kernel compiled, processes started
            began = time.perf_counter()
            count = sum(pool.map(evaluate_grids_of, jobs * (processes if compiled else 1)))
            elapsed = time.perf_counter() - began
        how = "compiled" if compiled else "in NumPy"
        several = f"{processes} process" + ("es" if processes > 1 else "")
        print(f"| exact evaluations {how}, {several} | {count:,} | {elapsed:.1f} s | {count / elapsed / 1e6:.2f} million/s |", flush=True)


def report_points(board_name: str, count: int, workers: int) -> None:
    board, workload = load_board(board_name), resnet18()
    drawn = random.Random(1).sample(families(default_space(board), board, workload), count)
    warm, rest = drawn[:2], drawn[2:]
    for processes in dict.fromkeys((1, workers)):
        jobs = [(rest[at::processes], board) for at in range(processes)]
        with ProcessPoolExecutor(processes) as pool:
            list(pool.map(evaluate, [(warm, board)] * processes))
            began = time.perf_counter()
            done = list(pool.map(evaluate, jobs))
            elapsed = time.perf_counter() - began
        points, feasible = sum(entry[0] for entry in done), sum(entry[1] for entry in done)
        print(f"| design points of {board_name} x ResNet-18, {len(rest)} families, {processes} processes "
              f"| {points:,} ({feasible:,} feasible) | {elapsed:.1f} s | {points / elapsed:,.0f} points/s |", flush=True)


def report_search() -> None:
    design = Design(rows=4, cols=4, accumulator_bits=32, psum_bytes=4096)
    depths = np.array([(i, w, o, p) for i in (512, 1024, 2048, 4096, 8192) for w in (512, 1024, 2048, 4096) for o in (512, 1024, 2048)
                       for p in (512, 1024, 2048)])
    compared, seconds = 0, 0.0
    for layer in dict.fromkeys(layer for _, layer, _ in resnet18().layers):
        space = LayerSpace(design, layer, Sizes.EVEN)
        space.best(depths, MemoryTiming(12, 14, 25))
        began = time.perf_counter()
        compared += space.best(depths, MemoryTiming(12, 14, 25)).compared
        seconds += time.perf_counter() - began
    print(f"| tilings decided for {len(depths)} bank configurations, 1 process | {compared:,} | {seconds:.2f} s "
          f"| {compared / seconds / 1e6:.2f} million/s |", flush=True)


MILLION = """\
rows: {range: [1, 8]}
cols: {range: [1, 8]}
lanes: [1, 2]
input_depth: {powers_of_two: [512, 65536]}
weight_depth: {powers_of_two: [512, 65536]}
output_depth: {powers_of_two: [512, 8192]}
psum_depth: [0, 512, 1024, 2048, 4096, 8192]
clock_mhz: [60, 80, 100, 120]
"""

BANKS = MILLION.replace("rows: {range: [1, 8]}\ncols: {range: [1, 8]}", "rows: [4, 8]\ncols: [4, 6, 8]")


def report_sweep(workload: str, board: str, workers: int, space: str = "") -> None:
    """One command from its start to its end."""
    with tempfile.TemporaryDirectory() as name:
        Path(name, "space.yaml").write_text(space)
        command = [sys.executable, "-m", "dse.cli.main", "sweep", workload, "--board", board, "--out", f"{name}/out", "--workers",
                   str(workers), *(["--space", f"{name}/space.yaml"] if space else [])]
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        elapsed = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        import pyarrow.parquet

        feasible = pyarrow.parquet.read_table(f"{name}/out/points.parquet", columns=["feasible"])["feasible"].to_pylist()
        points = len(feasible)
    print(f"| whole sweep of {workload} on {board}, {workers} workers | {points:,} points ({sum(feasible):,} feasible) | {elapsed:.1f} s "
          f"| {points / elapsed:,.0f} points/s; largest process so far {peak:,.0f} MiB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="papilio-pro")
    parser.add_argument("--families", type=int, default=42, help="drawn from the default space, two of them to warm up")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--million", action="store_true", help="also sweep a million points (minutes)")
    arguments = parser.parse_args()
    print("| what | how much | time | rate |\n|---|---|---|---|")
    report_grids(arguments.workers)
    report_search()
    report_points(arguments.board, arguments.families, arguments.workers)
    report_sweep("resnet18", arguments.board, arguments.workers)
    report_sweep("resnet18", "sp605", arguments.workers, BANKS)
    if arguments.million:
        report_sweep("linear K=10 C=64", "sp605", arguments.workers, MILLION)


if __name__ == "__main__":
    main()
