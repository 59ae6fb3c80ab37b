"""How fast and how small a sweep is: `python benchmarks/sweep.py` (docs/benchmarks.md has the last run).

Prints, for one process and for all processors together:

* exact closed-form evaluations a second: cycles and bytes of (design, layer, tiling), over whole grids of even tilings of ResNet-18's
  layers;
* tilings decided a second and design points a second: the optimum of every ResNet-18 layer for every bank configuration of families
  drawn from the default space of a board;
* with --million: time and peak memory of a sweep of a million points, files written;
* start-up of the commands.
"""

from __future__ import annotations

import argparse
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
from dse.schedule.axes import Sizes
from dse.schedule.closed_form import Run
from dse.schedule.explore import LayerSpace, tiling_blocks
from dse.sweep.evaluate import evaluate_family
from dse.sweep.family import Family, families
from dse.sweep.space import default_space
from dse.sweep.workload import Workload
from dse.workload.zoo import load_network
from hdl.design import Design
from sim.memory import MemoryTiming

GRID = 8192  # tilings evaluated at a time: what a processor's cache holds
ARRAYS = ((4, 4, 1), (8, 8, 1), (8, 4, 2))


def resnet18() -> Workload:
    network = load_network("resnet18")
    return Workload("resnet18", tuple((name, layer, 1) for name, layer in network.array_layers().items()))


def evaluate_grids(array: tuple[int, int, int]) -> tuple[int, float]:
    """(tilings, seconds) of the exact closed form over all even tilings of ResNet-18's distinct layers."""
    rows, cols, lanes = array
    design = Design(rows=rows, cols=cols, lanes=lanes, accumulator_bits=32, psum_bytes=4096, input_bytes=lanes * 65536)
    count, seconds = 0, 0.0
    for layer in dict.fromkeys(layer for _, layer, _ in resnet18().layers):
        for block in tiling_blocks(Run(design, layer, MemoryTiming(12, 14, 25)), Sizes.EVEN):
            pixels = len(block.y.size) * len(block.x.size)
            step = max(1, GRID // pixels)
            block.grid(0, 1)  # set up once, whatever the number of tilings
            began = time.perf_counter()
            for start in range(0, len(block.channels.ts), step):
                form = block.grid(start, min(start + step, len(block.channels.ts)))
                count += np.broadcast(form.cycles, form.beats_read + form.stored_beats).size
            seconds += time.perf_counter() - began
    return count, seconds


def evaluate(job: tuple[list[Family], Board]) -> tuple[int, int, float]:
    """(points, mappings found, seconds) of some families on ResNet-18."""
    workload = resnet18()
    began = time.perf_counter()
    tables = [evaluate_family(family, workload, job[1]) for family in job[0]]
    return sum(map(len, job[0])), sum(sum(table["feasible"].to_pylist()) for table in tables), time.perf_counter() - began


def report_closed_form(workers: int) -> None:
    for processes in dict.fromkeys((1, workers)):
        with ProcessPoolExecutor(processes) as pool:
            list(pool.map(evaluate_grids, ARRAYS[:processes]))  # programs compiled, processes started
            began = time.perf_counter()
            done = list(pool.map(evaluate_grids, ARRAYS * processes))
            elapsed = time.perf_counter() - began
        count, busy = sum(count for count, _ in done), sum(seconds for _, seconds in done)
        rate = count / busy * processes / 1e6
        print(f"| exact evaluations, {processes} processes | {count:,} | {elapsed:.1f} s | {rate:.2f} million/s |", flush=True)


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
    print(f"| tilings decided for {len(depths)} bank configurations, 1 process | {compared:,} fitting | {seconds:.2f} s "
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


def report_million(workers: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        space = Path(name, "space.yaml")
        space.write_text(MILLION)
        command = [sys.executable, "-m", "dse.cli.main", "sweep", "linear K=10 C=64", "--board", "sp605", "--space", str(space),
                   "--out", f"{name}/out", "--workers", str(workers)]
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        elapsed = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        import pyarrow.parquet

        points = pyarrow.parquet.ParquetFile(f"{name}/out/points.parquet").metadata.num_rows
    print(f"| sweep of one small layer, files written, {workers} workers | {points:,} points | {elapsed:.1f} s "
          f"| {points / elapsed:,.0f} points/s; largest process {peak:,.0f} MiB |", flush=True)


def report_start() -> None:
    for arguments in (["--help"], ["boards"], ["networks"], ["sweep", "--help"]):
        times = []
        for _ in range(5):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-m", "dse.cli.main", *arguments], check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - began)
        print(f"| `nearmac {' '.join(arguments)}` | best of 5 | {min(times):.2f} s | |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="papilio-pro")
    parser.add_argument("--families", type=int, default=42, help="drawn from the default space, two of them to warm up")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--million", action="store_true", help="also sweep a million points (minutes)")
    arguments = parser.parse_args()
    print("| what | how much | time | rate |\n|---|---|---|---|")
    report_closed_form(arguments.workers)
    report_search()
    report_points(arguments.board, arguments.families, arguments.workers)
    if arguments.million:
        report_million(arguments.workers)
    report_start()


if __name__ == "__main__":
    main()
