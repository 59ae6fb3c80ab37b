"""Random points against simulation: `python benchmarks/fidelity.py 2000` checks 2,000 points on 200 designs.

Each point is a random design, layer, tiling and memory timing (`dse/fidelity/points.py`); predicted cycles, bytes and issue cycles must
equal the simulated ones, and every output bit NumPy's. Exit status 1 when any differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from rich.progress import track

from dse.fidelity.check import Point, check_point
from dse.fidelity.points import random_points


def check_design(points: list[Point]) -> list[tuple[Point, tuple[str, ...]]]:
    return [(point, check_point(point).mismatches) for point in points]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("points", type=int, help="points to check; at least 10 a design")
    parser.add_argument("--designs", type=int, help="distinct designs (default: a tenth of the points)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    designs = arguments.designs or max(1, arguments.points // 10)
    per_design = -(-arguments.points // designs)
    points = list(random_points(arguments.seed, designs, per_design))
    batches = [points[at:at + per_design] for at in range(0, len(points), per_design)]
    began, wrong, geometries, precisions = time.perf_counter(), 0, Counter[str](), Counter[str]()
    with ProcessPoolExecutor(arguments.workers) as pool:
        for batch in track(pool.map(check_design, batches), total=len(batches), description="designs", disable=not sys.stderr.isatty()):
            for point, mismatches in batch:
                geometries[point.layer.name] += 1
                precisions[point.design.precision] += 1
                if mismatches:
                    wrong += 1
                    print(f"MISMATCH {'; '.join(mismatches)}\n  {point}", flush=True)
    print(f"{len(points)} points on {designs} designs, seed {arguments.seed}: {wrong} mismatches, "
          f"{time.perf_counter() - began:.0f} s on {arguments.workers} workers")
    print("geometries:", ", ".join(f"{name} {count}" for name, count in sorted(geometries.items())))
    print("precisions:", ", ".join(f"{name} {count}" for name, count in sorted(precisions.items())))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
