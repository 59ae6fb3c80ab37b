"""What the drivers in this folder share: layers come in as JSON on standard input, the result leaves as the last line of standard output.

A driver runs in its tool's own Python, so it may import nothing but the standard library and that tool.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

Layers = list[dict[str, int]]


def read_layers() -> Layers:
    """Square convolutions, one entry each: K and C channels, O x O outputs, F x F filter, stride S, P rows of padding above and left;
    the input has O * S rows."""
    layers: Layers = json.load(sys.stdin)
    return layers


class Stopwatch:
    """Made where the tool is imported and the measurement begins; the CPU seconds used until then are start-up."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def report(self, *, package: str, point: str, points: int, cycles: float, mappings: int | None = None) -> None:
        """Ends the measurement: ``points`` design points were evaluated on the whole workload by comparing ``mappings`` mappings.

        ``cycles``: those of the workload on the point with 1,024 MACs. ``package``: the tool's name in the package registry.
        """
        seconds, cpu_seconds = time.perf_counter() - self.wall, time.process_time() - self.cpu
        peak_kib = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        result: dict[str, Any] = {"version": _version(package), "point": point, "points": points, "seconds": seconds,
                                  "cpu_seconds": cpu_seconds, "start_cpu_seconds": self.cpu, "mappings": mappings,
                                  "peak_bytes": peak_kib * 1024, "cycles": round(cycles)}
        print(f"\n{json.dumps(result)}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its source
        return ""
