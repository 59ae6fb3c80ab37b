"""SCALE-Sim configurations: the array and SRAM sizes that a design starts from, and SCALE-Sim's own count beside ours."""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass
from typing import Any

from boards.errors import InputError
from boards.strict_yaml import read_text
from dse.estimate.compat import SystolicDataflow
from dse.workload.interop.scalesim_rows import scale_sim_cycles
from dse.workload.network import Network
from dse.workload.operators import unknown
from hdl.layer import Layer

SECTION = "architecture_presets"
SECTIONS = ("general", SECTION, "layout", "sparsity", "run_presets", "network_presets", "memory_presets")
DEFAULT_SRAM_KIB = (256, 256, 128)  # SCALE-Sim 3.0.0's own: ifmap, filter, ofmap
SRAM_KEYS = ("IfmapSramSzkB", "FilterSramSzkB", "OfmapSramSzkB")
KEYS = ("ArrayHeight", "ArrayWidth", *SRAM_KEYS, "Dataflow")
IGNORED = ("IfmapOffset", "FilterOffset", "OfmapOffset", "Bandwidth", "ReadRequestBuffer", "WriteRequestBuffer", "MemoryBanks")
MAX_SIDE = 1 << 16
MAX_SRAM_KIB = 1 << 16
MAX_ROWS = MAX_LANES = 64  # of a ``Design``
MAX_COLS = 128


@dataclass(frozen=True)
class ScaleSimConfig:
    """What is read of a ``.cfg``. ``height``, ``width``: of SCALE-Sim's array; SRAM sizes in KiB (SCALE-Sim's "kB" are of 1024 bytes)."""

    path: str
    height: int
    width: int
    dataflow: SystolicDataflow
    input_kib: int
    weight_kib: int
    output_kib: int
    is_bandwidth_bound: bool = False

    @property
    def array(self) -> str:
        return f"{self.height}x{self.width} {self.dataflow}"

    @property
    def starting_array(self) -> tuple[int, int, int]:
        """(rows, cols, lanes) with the same loops along the sides.

        ====  ======================================  ====================================
        ws    height: taps of input channels -> cols  width: output channels -> rows
        os    height: output pixels -> lanes          width: output channels -> rows
        is    height: taps of input channels -> cols  width: output pixels -> lanes
        ====  ======================================  ====================================

        Raises InputError where our array cannot be so large.
        """
        sides = {SystolicDataflow.WS: ("cols", "rows"), SystolicDataflow.OS: ("lanes", "rows"),
                 SystolicDataflow.IS: ("cols", "lanes")}[self.dataflow]
        limits = {"rows": MAX_ROWS, "cols": MAX_COLS, "lanes": MAX_LANES}
        found = {"rows": 1, "cols": 1, "lanes": 1}
        for key, size, side in (("ArrayHeight", self.height, sides[0]), ("ArrayWidth", self.width, sides[1])):
            if size > limits[side]:
                raise InputError(f"in {self.dataflow} this side becomes {side} of a design", where=self._at(key), value=size,
                                 allowed=f"at most {limits[side]}", suggestion="start from a smaller array")
            found[side] = size
        return found["rows"], found["cols"], found["lanes"]

    def design_options(self) -> dict[str, int]:
        """Fields of a ``Design``: the array and the banks; the rest is open. Raises InputError as :attr:`starting_array`."""
        rows, cols, lanes = self.starting_array
        return {"rows": rows, "cols": cols, "lanes": lanes, **self._banks()}

    def space(self) -> dict[str, Any]:
        """Keys of a design space around it: every shape of an array with as many multipliers, in these banks, with and without psums."""
        total = self.height * self.width
        divisors = [size for size in range(1, min(total, MAX_COLS) + 1) if total % size == 0]
        sides = [size for size in divisors if size <= MAX_ROWS]
        return {"rows": sides, "cols": divisors, "lanes": sides, "where": [f"rows * cols * lanes == {total}"], "drains": [1, "lanes"],
                "output_multiplier": ["serial", "dsp"], "psum_bytes": [0, 4096, 16384], **self._banks()}

    def cycles(self, layer: Layer, repeat: int = 1) -> int:
        """SCALE-Sim's stall-free cycles for ``layer``. Raises InputError for what SCALE-Sim cannot express."""
        return scale_sim_cycles(layer, rows=self.height, cols=self.width, dataflow=self.dataflow, repeat=repeat)

    def counts(self, network: Network) -> dict[str, int | str]:
        """The cycles of every layer of the array, or why SCALE-Sim has none."""
        found: dict[str, int | str] = {}
        for node in network.array_operators:
            try:
                found[node.name] = self.cycles(node.layer, node.repeat)
            except InputError as error:
                found[node.name] = error.what
        return found

    def to_dict(self) -> dict[str, Any]:
        return {"height": self.height, "width": self.width, "dataflow": str(self.dataflow), "input_kib": self.input_kib,
                "weight_kib": self.weight_kib, "output_kib": self.output_kib}

    def _banks(self) -> dict[str, int]:
        return {"input_bytes": self.input_kib * 1024, "weight_bytes": self.weight_kib * 1024, "output_bytes": self.output_kib * 1024}

    def _at(self, key: str) -> str:
        return f"{self.path}: {key}"


def load_config(path: str) -> ScaleSimConfig:
    """The configuration in a ``.cfg`` file. Keys that SCALE-Sim wants and this does not need may be missing. Raises InputError."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(read_text(path), source=path)
    except configparser.Error as error:
        line = getattr(error, "lineno", None) or next((number for number, _ in getattr(error, "errors", [])), None)
        raise InputError(f"not a configuration: {type(error).__name__}", where=f"{path}:{line}" if line else path,
                         suggestion=f"[section] lines and key = value lines, as in [{SECTION}]") from None
    if not parser.has_section(SECTION):
        near = unknown("no such section", SECTION, parser.sections(), where=path)
        raise InputError(f"no section [{SECTION}]", where=path, value=parser.sections()[:10], suggestion=near.suggestion)
    given = dict(parser.items(SECTION))
    known = {key.lower(): key for key in (*KEYS, *IGNORED)}
    for key in given:
        if key not in known:
            raise unknown("unknown key", key, [*KEYS, *IGNORED], where=f"{path}: [{SECTION}]")
    height, width = (_size(path, given, key, MAX_SIDE) for key in ("ArrayHeight", "ArrayWidth"))
    input_kib, weight_kib, output_kib = (_size(path, given, key, MAX_SRAM_KIB, default)
                                         for key, default in zip(SRAM_KEYS, DEFAULT_SRAM_KIB, strict=True))
    dataflow = given.get("dataflow", "").strip()
    if dataflow.lower() not in tuple(SystolicDataflow):
        raise unknown("not a dataflow" if dataflow else "missing", dataflow, tuple(SystolicDataflow), where=f"{path}: Dataflow")
    bandwidth = parser.get("run_presets", "interfacebandwidth", fallback="CALC").strip().upper()
    if bandwidth not in ("CALC", "USER"):
        raise unknown("not a choice", bandwidth, ("CALC", "USER"), where=f"{path}: InterfaceBandwidth")
    return ScaleSimConfig(path, height, width, SystolicDataflow(dataflow.lower()), input_kib, weight_kib, output_kib,
                          is_bandwidth_bound=bandwidth == "USER")


def _size(path: str, given: dict[str, str], key: str, most: int, default: int | None = None) -> int:
    text = given.get(key.lower(), "" if default is None else str(default)).strip()
    where = f"{path}: {key}"
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise InputError("must be a whole number" if text else "missing", where=where, **({"value": text} if text else {}),
                         allowed=f"1 to {most}")
    if len(text) > 10 or not 1 <= int(text) <= most:
        raise InputError("out of range", where=where, value=text, allowed=f"1 to {most}")
    return int(text)
