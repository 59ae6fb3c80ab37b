"""How long until a command says something: `python benchmarks/startup.py` (docs/benchmarks.md has the last run).

Each command runs on a terminal of its own and is ended at its first byte of output (of any kind). Prints seconds since its start and the
processor time that it took until then, the best of some runs: with other work on the machine only the second figure means anything.
"""

from __future__ import annotations

import argparse
import os
import pty
import subprocess
import sys
import tempfile
import time

COMMANDS = (["--help"], ["networks"], ["networks", "resnet18"], ["boards"], ["sweep", "--help"],
            ["sweep", "resnet18", "--board", "papilio-pro", "--out", "OUT"],
            ["simulate", "resnet18", "--board", "papilio-pro"],
            ["simulate", "conv K=8 C=8 OY=8 OX=8 FY=3 FX=3 P=1", "--board", "papilio-pro"])


def first_output(arguments: list[str]) -> tuple[float, float]:
    """(seconds, processor seconds) until the first byte."""
    reader, writer = pty.openpty()
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-m", "dse.cli.main", *arguments], stdout=writer, stderr=writer, close_fds=True) as process:
        os.close(writer)
        os.read(reader, 1)
        elapsed = time.perf_counter() - began
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            user, system = file.read().rsplit(")", 1)[1].split()[11:13]
        process.kill()
    os.close(reader)
    return elapsed, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print("| command | first output | processor time until then |\n|---|---|---|")
    for arguments in COMMANDS:
        with tempfile.TemporaryDirectory() as name:
            found = [first_output([f"{name}/{run}" if word == "OUT" else word for word in arguments]) for run in range(runs)]
        shown = " ".join(f"'{word}'" if " " in word else word for word in arguments)
        print(f"| `nearmac {shown}` | {min(wall for wall, _ in found):.2f} s | {min(cpu for _, cpu in found):.2f} s |", flush=True)


if __name__ == "__main__":
    main()
