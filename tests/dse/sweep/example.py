"""A small sweep, for this process or as a program: ``python -m tests.dse.sweep.example OUT WORKERS [SCHEDULER]`` begins or goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from boards.loader import load_board
from dse.sweep.run import SweepReport, sweep
from dse.sweep.space import Space
from dse.sweep.workload import Workload
from dse.workload.grammar import parse_layer

SPACE = {"rows": [1, 2], "cols": [1, 3], "lanes": [1, 2], "input_bytes": [4096, 8192], "weight_bytes": [4096, 16384],
         "output_bytes": [2048], "psum_bytes": [0], "precision": ["w8a8", "w1a1"]}
LAYERS = ("conv K=3 C=2 OY=3 OX=1 FY=1 FX=1 name=first",)
BOARDS = ("papilio-pro", "atlys")


def workload() -> Workload:
    layers = [parse_layer(text) for text in LAYERS]
    return Workload("example", tuple((layer.name, layer, times) for times, layer in enumerate(layers, start=2)))


def run_example(out: Path, *, space: dict[str, Any] | None = None, boards: tuple[str, ...] = BOARDS, **options: Any) -> SweepReport:
    """32 families of 4 points, two families a chunk."""
    return sweep(workload(), [load_board(name) for name in boards], Space.from_dict(SPACE if space is None else space), out,
                 **{"chunk_families": 2, **options})


def contents(out: Path) -> dict[str, bytes]:
    """Every file below ``out``."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


if __name__ == "__main__":
    run_example(Path(sys.argv[1]), workers=int(sys.argv[2]), scheduler=sys.argv[3] if len(sys.argv) > 3 else None, resume=True)
