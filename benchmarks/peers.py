"""The same two workloads on nearmac and on its neighbours: time per design point, points a second, peak memory, as a table.

`python benchmarks/peers.py --install` makes an environment for each neighbour below `--envs` (about 1 GB) and runs all of them. A point
is one design evaluated on a whole workload, with the mapping that the tool finds for it. Every tool runs in a process of its own, from
`benchmarks/peers/`, which takes the time once the tool is imported ("start" is what came before). What is absent or fails is a row that
says why.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DRIVERS = ROOT / "benchmarks" / "peers"
# What each environment needs; the second package of the first two is one that the tool fails without.
PACKAGES = {"zigzag": ["zigzag-dse==3.9.1", "six"], "scalesim": ["scalesim==3.0.0", "numpy<2.4"], "chipleap": ["chipleap==0.3.0"]}
TOOLS = ("nearmac", *PACKAGES)


def conv(k: int, c: int, outputs: int, taps: int, stride: int = 1) -> dict[str, int]:
    """A square convolution that is padded by half its filter."""
    return {"K": k, "C": c, "O": outputs, "F": taps, "S": stride, "P": taps // 2}


def resnet18() -> list[dict[str, int]]:
    """ResNet-18's 20 convolutions in order (He et al. 2016), 1,813.6 million MACs."""
    layers, channels, size = [conv(64, 3, 112, 7, 2)], 64, 56
    for stage in range(4):
        for block in range(2):
            first = stage > 0 and block == 0
            if first:
                channels, size = 2 * channels, size // 2
                layers.append(conv(channels, channels // 2, size, 1, 2))
            layers += [conv(channels, channels // 2 if first else channels, size, 3, 2 if first else 1), conv(channels, channels, size, 3)]
    return layers


WORKLOADS = {"W1": [conv(192, 192, 13, 3)], "W2": resnet18()}
MEANING = {"W1": "conv 3x3, 192 to 192 channels, 13x13", "W2": "ResNet-18's 20 convolutions"}
HEAD = ["workload", "tool", "points", "s / point", "CPU s / point", "points / s", "mappings / s", "start, CPU s", "peak MB",
        "cycles, 1,024 MACs", "what a point is"]


def python_of(tool: str, environments: Path) -> Path:
    return Path(sys.executable) if tool == "nearmac" else environments / tool / "bin" / "python"


def install(environments: Path) -> None:
    """Makes the environments that are not there yet, with pip."""
    for tool, packages in PACKAGES.items():
        python = python_of(tool, environments)
        if python.exists():
            continue
        print(f"installing {' '.join(packages)} in {environments / tool}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", environments / tool], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)


def measure(tool: str, workload: str, environments: Path, timeout_s: float) -> dict[str, Any] | str:
    """The driver's result, or why there is none."""
    python = python_of(tool, environments)
    if not python.exists():
        return f"no environment {tool}/ (--install makes it)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)} if tool == "nearmac" else dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run([python.absolute(), DRIVERS / f"run_{tool}.py"], input=json.dumps(WORKLOADS[workload]), text=True,
                                  capture_output=True, timeout=timeout_s, cwd=folder, env=environment)
        except subprocess.TimeoutExpired:
            return f"over {timeout_s:g} s (--timeout)"
    lines = done.stdout.splitlines()
    if done.returncode or not lines or not lines[-1].startswith("{"):
        reason = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        return f"exit status {done.returncode}: {reason}"
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def row(tool: str, workload: str, result: dict[str, Any] | str) -> list[str]:
    if isinstance(result, str):
        return [workload, tool, *["-"] * (len(HEAD) - 3), result]
    per_point, rate = result["seconds"] / result["points"], result["points"] / result["seconds"]
    mappings = f"{result['mappings'] / result['seconds']:,.0f}" if result["mappings"] else "-"
    return [workload, f"{tool} {result['version']}".strip(), f"{result['points']:,}", f"{per_point:.3g}",
            f"{result['cpu_seconds'] / result['points']:.3g}", f"{rate:,.3g}" if rate < 1000 else f"{rate:,.0f}", mappings,
            f"{result['start_cpu_seconds']:.2f}", f"{result['peak_bytes'] / 1e6:,.0f}", f"{result['cycles']:,}", result["point"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=Path, default=ROOT / "build" / "peers", help="folder of the environments (default: build/peers)")
    parser.add_argument("--install", action="store_true", help="make the environments that are missing")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one tool on one workload (default: 600)")
    parser.add_argument("--tool", choices=TOOLS, action="append", help="only this tool; may be repeated")
    parser.add_argument("--workload", choices=list(WORKLOADS), action="append", help="only this workload; may be repeated")
    arguments = parser.parse_args()
    if arguments.install:
        install(arguments.envs)
    print(f"{time.strftime('%Y-%m-%d')}, Python {sys.version.split()[0]}, {os.cpu_count()} cores. "
          + "; ".join(f"{name}: {MEANING[name]}" for name in arguments.workload or WORKLOADS) + ".\n")
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|", flush=True)
    for workload in arguments.workload or WORKLOADS:
        for tool in arguments.tool or TOOLS:
            print("| " + " | ".join(row(tool, workload, measure(tool, workload, arguments.envs, arguments.timeout))) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
