"""Networks and layers as files of other tools, so that a result can be checked there.

A format that cannot express something either has it written in another way, with a note that names it, or refuses it by name. What the
host computes is in none of them but ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from boards.errors import InputError
from dse.workload.interop.assembly import listed
from dse.workload.interop.scalesim import CONV_COLUMNS, DEPTHWISE
from dse.workload.interop.scalesim_rows import TopologyRow
from dse.workload.layer_file import dump_layer, dump_mapping
from dse.workload.line import network_of
from dse.workload.network import Network
from dse.workload.network_file import dump_network, flow_text
from dse.workload.operators import ArrayOperator, unknown
from hdl.layer import Layer

FORMATS = ("yaml", "scalesim", "zigzag", "timeloop")
MAX_COPIES = 4096
LEAST_PARTIAL_SUM_BITS = 16
CONV_EQUATION = "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]"
GROUPED_EQUATION = "O[b][g][k][oy][ox]+=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]"
LINEAR_EQUATION = "O[b][k]+=W[k][c]*I[b][c]"
GROUPED_LINEAR_EQUATION = "O[b][g][k]+=W[g][k][c]*I[b][g][c]"


@dataclass
class Export:
    """``files``: text by name; one, or one a layer. ``notes``: what is written in another way than we have it, for the user."""

    files: dict[str, str]
    layers: int
    notes: list[str] = field(default_factory=list)


def export(workload: Network | Layer, format: str, *, weight_bits: int = 8, activation_bits: int = 8) -> Export:
    """``workload`` as ``yaml`` (ours), ``scalesim``, ``zigzag`` or ``timeloop``. The bits are those of a single layer.

    Raises InputError for another format, and for what the format cannot express: the layer, and what.
    """
    if format not in FORMATS:
        raise unknown("not a format", format, FORMATS, where="--format")
    if format == "yaml":
        text = dump_layer(workload) if isinstance(workload, Layer) else dump_network(workload)
        return Export({f"{workload.name}.yaml": text}, 1 if isinstance(workload, Layer) else len(workload.array_operators))
    network = network_of(workload, weight_bits, activation_bits) if isinstance(workload, Layer) else workload
    notes = _Notes()
    files = WRITERS[format](network, notes)
    host = [node.name for node in network.host_operators() if not node.is_view]
    notes.add("host operators are left out", *host)
    notes.add("runs several times: written once", *(node.name for node in network.array_operators if node.repeat > 1))
    return Export(files, len(network.array_operators), notes.lines())


class _Notes:
    """Names by what is said about them."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def add(self, what: str, *names: str) -> None:
        """Nothing where nothing is named."""
        if names:
            self._names.setdefault(what, []).extend(names)

    def lines(self) -> list[str]:
        return [f"{listed(names)}: {what}" for what, names in self._names.items()]


# -- SCALE-Sim --------------------------------------------------------------------------------------------------------


def _scalesim(network: Network, notes: _Notes) -> dict[str, str]:
    lines = ["Layer name, " + ", ".join(CONV_COLUMNS) + ","]
    used: set[str] = set()
    for node in network.array_operators:
        layer, row = node.layer, TopologyRow.of(node.layer)
        if any(layer.pads):
            notes.add("padding is in the input size, and its zeros count as data", node.name)
        if row.outputs != (layer.OY if layer.kind == "conv" else layer.B) * layer.OX:
            notes.add("SCALE-Sim rounds output sizes up, and counts a row or column more than there is", node.name)
        name = _topology_name(node.name, row.is_depthwise, used)
        if name != node.name:
            notes.add("written under another name" + (f", since {DEPTHWISE} makes a row depthwise" if row.is_depthwise else ""), node.name)
        names = [name]
        channels = row.channels
        if row.is_depthwise:
            channels = row.channels * layer.G
        elif row.copies > 1:
            if row.copies > MAX_COPIES:
                raise InputError("SCALE-Sim has no groups and no batch, and this takes too many rows", where=node.name, value=row.copies,
                                 allowed=f"at most {MAX_COPIES} rows")
            names = [f"{name}_{at}" for at in range(row.copies)]
            notes.add("a row for each group and image, as SCALE-Sim has neither", node.name)
        sizes = (row.height, row.width, row.fy, row.fx, channels, row.filters, row.stride)
        lines += [", ".join((each, *map(str, sizes))) + "," for each in names]
    notes.add("SCALE-Sim has 8 bits only", *(node.name for node in network.array_operators if node.precision != "w8a8"))
    return {f"{network.name}.csv": "\n".join(lines) + "\n"}


def _topology_name(name: str, is_depthwise: bool, used: set[str]) -> str:
    """Without commas, and with ``DP`` in it where the row is depthwise, only."""
    plain = name.replace(",", "_")
    plain = re.sub(DEPTHWISE, DEPTHWISE.lower(), plain) + (f"_{DEPTHWISE}" if is_depthwise else "")
    while plain in used:
        plain += "_"
    used.add(plain)
    return plain


# -- ZigZag -----------------------------------------------------------------------------------------------------------


def _zigzag(network: Network, notes: _Notes) -> dict[str, str]:
    ids = {node.name: at for at, node in enumerate(network.array_operators)}
    entries = [_zigzag_entry(node, ids) for node in network.array_operators]
    lines = ["- " + "\n  ".join(f"{key}: {flow_text(value)}" for key, value in entry.items()) for entry in entries]
    return {f"{network.name}.yaml": "\n".join(lines) + "\n"}


def _zigzag_entry(node: ArrayOperator, ids: dict[str, int]) -> dict[str, Any]:
    layer, own = node.layer, ids[node.name]
    is_linear, is_grouped = layer.kind == "linear", layer.G > 1
    loops = {"B": layer.B, **({"G": layer.G} if is_grouped else {}), "K": layer.K // layer.G, "C": layer.C // layer.G}
    relations, padding = [], {}
    if not is_linear:
        loops |= {"OY": layer.OY, "OX": layer.OX, "FY": layer.FY, "FX": layer.FX}
        relations = [f"ix={layer.SX}*ox+{layer.DX}*fx", f"iy={layer.SY}*oy+{layer.DY}*fy"]
        padding = {"pr_loop_dims": ["IX", "IY"], "pr_loop_sizes": [layer.IX, layer.IY],
                   "padding": [[layer.PL, layer.PR], [layer.PT, layer.PB]]}
    equation = {(False, False): CONV_EQUATION, (False, True): GROUPED_EQUATION, (True, False): LINEAR_EQUATION,
                (True, True): GROUPED_LINEAR_EQUATION}[is_linear, is_grouped]
    # Partial sums as wide as in ZigZag's own workloads: those that its accelerators have registers for.
    partial = max(LEAST_PARTIAL_SUM_BITS, node.weight_bits + node.activation_bits)
    return {"id": own, "name": node.name, "operator_type": "Gemm" if is_linear else "Conv", "equation": equation,
            "dimension_relations": relations, "loop_dims": list(loops), "loop_sizes": list(loops.values()), **padding,
            "operand_precision": {"W": node.weight_bits, "I": node.activation_bits, "O": partial, "O_final": node.output_bits},
            "operand_source": {"W": own, "I": ids.get(node.inputs[0], own)}}


# -- Timeloop ---------------------------------------------------------------------------------------------------------


def _timeloop(network: Network, notes: _Notes) -> dict[str, str]:
    """A problem for each layer: Timeloop looks at one at a time."""
    files: dict[str, str] = {}
    for node in network.array_operators:
        if any(node.layer.pads):
            notes.add("a problem has no padding: its zeros are inputs", node.name)
        files[_file_name(node.name, files)] = dump_mapping({"problem": _problem(node)})
    notes.add("its problems have no bits: set them in Timeloop's architecture", network.name)
    return files


def _problem(node: ArrayOperator) -> dict[str, Any]:
    """Timeloop's own convolution, widths P and R, heights Q and S; with groups, a G before the channels."""
    layer = node.layer
    group = [[["G"]]] if layer.G > 1 else []
    sizes = {**({"G": layer.G} if group else {}), "N": layer.B, "K": layer.K // layer.G, "C": layer.C // layer.G, "P": layer.OX,
             "Q": layer.OY, "R": layer.FX, "S": layer.FY}
    coefficients = {"Wstride": layer.SX, "Hstride": layer.SY, "Wdilation": layer.DX, "Hdilation": layer.DY}
    spaces = [
        {"name": "Weights", "projection": [*group, [["C"]], [["K"]], [["R"]], [["S"]]]},
        {"name": "Inputs", "projection": [[["N"]], *group, [["C"]], [["R", "Wdilation"], ["P", "Wstride"]],
                                          [["S", "Hdilation"], ["Q", "Hstride"]]]},
        {"name": "Outputs", "projection": [[["N"]], *group, [["K"]], [["Q"]], [["P"]]], "read_write": True}]
    return {"version": 0.4,
            "shape": {"name": "cnn_layer" if not group else "grouped_cnn_layer", "dimensions": list(sizes),
                      "coefficients": [{"name": name, "default": 1} for name in coefficients], "data_spaces": spaces},
            "instance": {**sizes, **coefficients}}


def _file_name(name: str, used: dict[str, str]) -> str:
    """A file name that every system takes."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "layer"
    found, count = f"{plain}.yaml", 1
    while found in used:
        count += 1
        found = f"{plain}_{count}.yaml"
    return found


WRITERS: dict[str, Callable[[Network, _Notes], dict[str, str]]] = {"scalesim": _scalesim, "zigzag": _zigzag, "timeloop": _timeloop}
