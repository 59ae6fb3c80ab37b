"""Synthesis with Yosys: the cells that a component becomes on an FPGA family, in all or per instance."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import verilog
from amaranth.lib import wiring

from hdl.errors import InputError, ToolError, nearest
from hdl.verilog import without_brackets

FLOWS = {"xc6s": "synth_xilinx -family xc6s -noiopad", "ecp5": "synth_ecp5", "ice40": "synth_ice40"}
"""Family -> Yosys command."""
PLAIN_FLOW = "synth_xilinx -family xc6s"
"""What users of the emitted Verilog are told to run."""
TOP = "top"
_INITIAL_ZERO = re.compile(r"^ *\S+\[\d+\] = \d+'[bdh]0+;\n", re.MULTILINE)
LAST_LINES = 20

# Yosys ends its process when it fails, and holds on to memory when it does not: it gets a process of its own.
_SCRIPT = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""


class SynthesisError(ToolError):
    """Yosys failed.

    Parameters
    ----------
    commands: the Yosys commands, one after another.
    status: exit status.
    last_lines: the end of what it printed, standard error included.
    """

    def __init__(self, commands: Sequence[str], status: int, last_lines: str) -> None:
        super().__init__(commands, status, last_lines)
        self.args = (f"synthesis failed with status {status}: {'; '.join(commands)}\n{last_lines}".rstrip(),)


@dataclass(frozen=True)
class Cells:
    """Cells by type, and what they amount to. Spartan-6 types, and ECP5's and iCE40's as far as named."""

    by_type: Mapping[str, int]

    def _sum(self, *prefixes: str) -> int:
        return sum(count for kind, count in self.by_type.items() if kind.startswith(prefixes))

    @property
    def luts(self) -> int:
        """Look-up tables that are logic, inverters not among them: LUT1 to LUT6; LUT4 and two a CCU2C (ECP5); SB_LUT4 (iCE40)."""
        return self._sum("LUT", "SB_LUT4") + 2 * self._sum("CCU2C")

    @property
    def lut_rams(self) -> int:
        """Cells that make RAM or shift registers of look-up tables (a RAM32M takes four, a shift register one)."""
        return self._sum("RAM32", "RAM64", "RAM128", "RAM256", "SRL", "TRELLIS_DPR")

    @property
    def inverters(self) -> int:
        return self._sum("INV")

    @property
    def flip_flops(self) -> int:
        return self._sum("FD", "SB_DFF", "TRELLIS_FF")

    @property
    def carries(self) -> int:
        """Carry cells; a CARRY4 (Spartan-6) is a slice's chain of four bits."""
        return self._sum("CARRY4", "SB_CARRY")

    @property
    def muxes(self) -> int:
        """Slice multiplexers behind look-up tables (MUXF7, MUXF8)."""
        return self._sum("MUXF")

    @property
    def dsps(self) -> int:
        return self._sum("DSP48", "MULT18X18", "SB_MAC16")

    @property
    def block_rams(self) -> int:
        """Whole block RAMs: RAMB16BWER, DP16KD or SB_RAM40."""
        return self._sum("RAMB16", "DP16KD", "PDPW16KD", "SB_RAM40")

    @property
    def half_block_rams(self) -> int:
        """RAMB8BWER, which a bank must not become."""
        return self._sum("RAMB8")

    def __add__(self, other: Cells) -> Cells:
        kinds = sorted({*self.by_type, *other.by_type})
        return Cells({kind: self.by_type.get(kind, 0) + other.by_type.get(kind, 0) for kind in kinds})


def require_yosys() -> None:
    """Raises InputError when the extra that has Yosys is not installed."""
    if importlib.util.find_spec("pyosys") is None:
        raise InputError("synthesis needs Yosys, which is not installed", suggestion="pip install 'nearmac[synth]'")


def run_yosys(commands: Sequence[str], *, folder: Path) -> None:
    """Runs Yosys commands in ``folder``. Raises SynthesisError, with the end of the log, when one fails."""
    require_yosys()
    run = subprocess.run([sys.executable, "-c", _SCRIPT, *commands], cwd=folder, text=True, errors="replace",
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if run.returncode:
        lines = run.stdout.rstrip().splitlines()[-LAST_LINES:]
        raise SynthesisError(commands, run.returncode, "\n".join(lines))


def synthesise(component: wiring.Component, *, family: str = "xc6s", flatten: bool = True, run: str = "") -> dict[str, Cells]:
    """Instance path (``""`` for the top itself, ``"issue.walker"``) -> the cells inside it, those of its instances not counted.

    Parameters
    ----------
    component: what to synthesise.
    family: a key of :data:`FLOWS`.
    flatten: dissolve the hierarchy, so that logic is shared and dropped across instances; all cells are then the top's.
    run: the part of the flow to run, such as ``"begin:map_ffs"``; all of it when empty.

    Raises
    ------
    InputError: no such family, or Yosys is not installed. SynthesisError: Yosys failed.
    """
    if family not in FLOWS:
        near = nearest(family, FLOWS)
        raise InputError("no synthesis flow for this family", where="family", value=family, allowed=", ".join(FLOWS),
                         suggestion=f"nearest: {near}" if near else None)
    require_yosys()
    text = without_brackets(verilog.convert(component, name=TOP, emit_src=False, strip_internal_attrs=True))
    flow = f"{FLOWS[family]} -top {TOP}"
    if family == "xc6s" and flatten:
        flow += " -flatten"  # the other families' flows flatten unless told otherwise
    elif family != "xc6s" and not flatten:
        flow += " -noflatten"
    if run:
        flow += f" -run {run}"
    # Amaranth says of every word of a RAM that it is 0 at first. That changes no cell, and takes most of the time of a deep RAM.
    text = _INITIAL_ZERO.sub("", text)
    with tempfile.TemporaryDirectory(prefix="nearmac-synthesis-") as name:
        folder = Path(name)
        (folder / "top.v").write_text(text)
        run_yosys(["read_verilog top.v", flow, "tee -q -o stat.json stat -json"], folder=folder)
        modules = json.loads((folder / "stat.json").read_text())["modules"]
    names = {module.lstrip("\\") for module in modules}
    result = {}
    for module, statistics in modules.items():
        path = module.lstrip("\\").removeprefix(TOP).lstrip(".")
        result[path] = Cells({kind: count for kind, count in sorted(statistics["num_cells_by_type"].items())
                              if kind.lstrip("\\") not in names})
    return result


def total(parts: Mapping[str, Cells], *prefixes: str) -> Cells:
    """Sum over the instances at or below the paths ``prefixes``; over all of them when none is given."""
    chosen = [cells for path, cells in parts.items()
              if not prefixes or any(path == prefix or path.startswith(prefix + ".") for prefix in prefixes)]
    return sum(chosen, Cells({}))
