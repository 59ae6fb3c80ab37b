"""Synthesis with Yosys: the cells that a component becomes on an FPGA family, in all or per instance."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth.lib import wiring

from boards.primitives import Family
from hdl.errors import InputError, ToolError, nearest
from hdl.verilog import RAMS, component_verilog


@dataclass(frozen=True)
class Flow:
    """How Yosys synthesises for a family: ``command``, and what it takes to dissolve the hierarchy, or not to, and to use DSP blocks,
    or not to."""

    command: str
    flat: str = ""
    apart: str = ""
    dsps: str = ""
    no_dsps: str = "-nodsp"


FLOWS = {
    Family.SPARTAN6: Flow("synth_xilinx -family xc6s -noiopad", flat="-flatten"),
    Family.SERIES7: Flow("synth_xilinx -family xc7 -noiopad", flat="-flatten"),
    Family.ULTRASCALE_PLUS: Flow("synth_xilinx -family xcup -noiopad", flat="-flatten"),
    Family.ECP5: Flow("synth_ecp5", apart="-noflatten"),
    Family.ICE40: Flow("synth_ice40 -device u", apart="-noflatten", dsps="-dsp", no_dsps=""),  # the devices with DSP blocks are UltraPlus
    Family.GOWIN: Flow("synth_gowin -noiopads", apart="-noflatten"),
}
BLOCKS = "begin:map_ffram"
"""The part of any flow after which DSP blocks, block RAMs and distributed RAM are final; look-up tables and flip-flops, which take most of
the time, come later."""
KEPT = "nearmac_matches_* nearmac_compressor_*"
DISSOLVE = f"setattr -mod -unset keep_hierarchy {KEPT}"
"""What follows a flow: the modules that kept their borders (:mod:`hdl.popcount`) are mapped by then and need them no more."""
TOP = "top"
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
    """Cells by type, and what they amount to, for the families of :data:`FLOWS`."""

    by_type: Mapping[str, int]

    def _sum(self, *prefixes: str) -> int:
        return sum(count for kind, count in self.by_type.items() if kind.startswith(prefixes))

    @property
    def luts(self) -> int:
        """Look-up tables that are logic, inverters not among them: LUT1 to LUT6 (Xilinx), LUT4 and two a CCU2C (ECP5), SB_LUT4 (iCE40),
        LUT1 to LUT4 and ALU (Gowin)."""
        return self._sum("LUT", "SB_LUT4", "ALU") + 2 * self._sum("CCU2C")

    @property
    def distributed_rams(self) -> int:
        """Cells of RAM made of look-up tables (a RAM32M or RAM64M takes four)."""
        return self._sum("RAM32", "RAM64", "RAM128", "RAM256", "TRELLIS_DPR", "RAM16S")

    @property
    def lut_rams(self) -> int:
        """Cells that make RAM or shift registers of look-up tables (a shift register takes one)."""
        return self.distributed_rams + self._sum("SRL")

    @property
    def inverters(self) -> int:
        return self._sum("INV")

    @property
    def flip_flops(self) -> int:
        return self._sum("FD", "SB_DFF", "TRELLIS_FF", "DFF")

    @property
    def carries(self) -> int:
        """Carry cells: CARRY4 and CARRY8 are four and eight bits, CCU2C two, ALU and SB_CARRY one."""
        return self._sum("CARRY4", "CARRY8", "SB_CARRY", "CCU2C", "ALU")

    @property
    def muxes(self) -> int:
        """Multiplexers behind look-up tables (MUXF7, MUXF8, PFUMX, L6MUX21, MUX2_LUT5...)."""
        return self._sum("MUXF", "PFUMX", "L6MUX", "MUX2")

    @property
    def dsps(self) -> int:
        return self._sum("DSP48", "MULT18X18", "SB_MAC16", "MULT9X9", "MULT36X36")

    @property
    def block_rams(self) -> int:
        """Block RAMs in units of :func:`hdl.family.block_ram`: a RAMB36 is two."""
        return self._sum("RAMB16", "RAMB18", "DP16KD", "PDPW16KD", "SB_RAM40", "SDPB", "SDPX9B", "DPB", "DPX9B") + 2 * self._sum("RAMB36")

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


def run_yosys(commands: Sequence[str], *, folder: Path) -> str:
    """Runs Yosys commands in ``folder``; what it printed. Raises SynthesisError, with the end of that, when one fails."""
    require_yosys()
    run = subprocess.run([sys.executable, "-c", _SCRIPT, *commands], cwd=folder, text=True, errors="replace",
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if run.returncode:
        lines = run.stdout.rstrip().splitlines()[-LAST_LINES:]
        raise SynthesisError(commands, run.returncode, "\n".join(lines))
    return run.stdout


def flow(family: Family | str, top: str, *, flatten: bool = True, dsps: bool = True, run: str = "") -> list[str]:
    """The Yosys commands that synthesise the module ``top``, once it is read, for ``family``. Parameters and errors: :func:`synthesise`."""
    if family not in FLOWS:
        near = nearest(family, FLOWS)
        raise InputError("no synthesis flow for this family", where="family", value=family, allowed=", ".join(FLOWS),
                         suggestion=f"nearest: {near}" if near else None)
    chosen = FLOWS[Family(family)]
    command = " ".join(filter(None, (chosen.command, f"-top {top}", chosen.flat if flatten else chosen.apart,
                                     chosen.dsps if dsps else chosen.no_dsps, run and f"-run {run}")))
    if flatten:
        return [command, DISSOLVE, "flatten", "clean"]
    # Each RAM and compressor is an instance of a module that all share: it goes to the bank or the unit that it is part of.
    return [f"hierarchy -top {top}", "proc", *(f"flatten t:*{name}*" for name, _ in RAMS.values()), command, DISSOLVE,
            *(f"flatten t:{kept}" for kept in KEPT.split())]


def synthesise(component: wiring.Component, *, family: Family | str = Family.SPARTAN6, flatten: bool = True, dsps: bool = True,
               run: str = "") -> dict[str, Cells]:
    """Instance path (``""`` for the top itself, ``"issue.walker"``) -> the cells inside it, those of its instances not counted.

    Parameters
    ----------
    component: what to synthesise.
    family: a key of :data:`FLOWS`.
    flatten: dissolve the hierarchy, so that logic is shared and dropped across instances; all cells are then the top's.
    dsps: use DSP blocks for products that are written as such.
    run: the part of the flow to run, such as :data:`BLOCKS`; all of it when empty.

    Raises
    ------
    InputError: no such family, or Yosys is not installed. SynthesisError: Yosys failed.
    """
    commands = flow(family, TOP, flatten=flatten, dsps=dsps, run=run)
    require_yosys()
    with tempfile.TemporaryDirectory(prefix="nearmac-synthesis-") as name:
        run_flow(component_verilog(component, TOP, merge=flatten), commands, Path(name))
        return read_cells(Path(name), TOP)


def run_flow(verilog: str, commands: Sequence[str], folder: Path) -> None:
    """Runs a flow on a text: leaves ``top.v``, Yosys' ``cells.json`` (``stat -json``) and ``yosys.log`` in ``folder``.

    Raises InputError when Yosys is not installed, SynthesisError when it failed.
    """
    (folder / "top.v").write_text(verilog)
    log = run_yosys(["read_verilog top.v", *commands, "tee -q -o cells.json stat -json"], folder=folder)
    (folder / "yosys.log").write_text(log)


def read_cells(folder: Path, top: str) -> dict[str, Cells]:
    """What :func:`synthesise` gives, from the ``cells.json`` in ``folder``."""
    modules = json.loads((folder / "cells.json").read_text())["modules"]
    names = {module.lstrip("\\") for module in modules}
    result = {}
    for module, statistics in modules.items():
        path = module.lstrip("\\").removeprefix(top).lstrip(".")
        result[path] = Cells({kind: count for kind, count in sorted(statistics["num_cells_by_type"].items())
                              if kind.lstrip("\\") not in names and kind != "$scopeinfo"})
    return result


def total(parts: Mapping[str, Cells], *prefixes: str) -> Cells:
    """Sum over the instances at or below the paths ``prefixes``; over all of them when none is given."""
    chosen = [cells for path, cells in parts.items()
              if not prefixes or any(path == prefix or path.startswith(prefix + ".") for prefix in prefixes)]
    return sum(chosen, Cells({}))
