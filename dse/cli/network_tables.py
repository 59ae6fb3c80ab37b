"""Networks as tables."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dse.workload.line import lines
from dse.workload.network import Network
from dse.workload.operators import UNKNOWN_SHAPE, ArrayOperator, HostOperator, Operator

HOST_REMARK = "The array does not compute host operators, and no cycle count or time includes them."
LINE_REMARK = ("Layers of one line follow each other with nothing between them: a design with chaining may keep the tensors between "
               "them on chip.")
ABBREVIATIONS = {"batch_norm": "bn", "local_response_norm": "lrn", "global_average_pool": "global_avg_pool"}


def overview(networks: list[Network]) -> Table:
    """One row a network. 1 MAC is 2 ops."""
    table = number_table("name left", "layers", "on host", "MACs", "weights", "parameters", "activations", "precision left", "input",
                   "what left")
    for network in networks:
        totals = network.totals()
        _row(table, network.name, totals["array_layers"], totals["host_operators"], network.macs, network.weights, network.parameters,
             network.activations, network.precision, shape_text(network.inputs[0]), network.title)
    return table


def detail_tables(network: Network) -> list[RenderableType]:
    """Array layers in order, host operators in order, totals."""
    host = network.host_operators()
    on_host: list[RenderableType] = [host_table(host), Text(HOST_REMARK)] if host else []
    remark: list[RenderableType] = [Text(LINE_REMARK)] if lines(network) else []
    return [layers_table(network), *remark, *on_host, totals_table(network)]


def layers_table(network: Network) -> Table:
    table = number_table("layer left", "operator left", "output", "MACs", "weights", "activations", "bits left", "bytes", "ops/byte",
                         "line", title=f"{network.name}: layers that run on the array")
    numbers = {name: str(number) for number, line in enumerate(lines(network), start=1) for name in line}
    for node in network.array_operators:
        _row(table, node.name, operator_text(node), shape_text(node), node.macs, node.weights, node.activations, node.precision,
             node.operand_bytes, f"{node.ops_per_byte:,.1f}", numbers.get(node.name, ""))
    return table


def host_table(operators: tuple[HostOperator, ...]) -> Table:
    notes = ("why left",) if any(node.note for node in operators) else ()
    table = number_table("name left", "operator left", "output", "ops", "bytes read", "bytes written", *notes, title="Host operators")
    for node in operators:
        _row(table, node.name, "+".join(short(op) for op in (node.op, *node.folded)), shape_text(node), node.ops, node.bytes_read,
             node.bytes_written, *((node.note,) if notes else ()))
    return table


def totals_table(network: Network) -> Table:
    totals = network.totals()
    table = Table(title="Totals", title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    ratio = 2 * network.macs / totals["operand_bytes"]
    for name, value in (
            ("layers", f"{totals['array_layers']} on the array, {totals['host_operators']} on the host"),
            ("MACs", f"{network.macs:,} (1 MAC = 2 ops)"),
            ("weights", f"{network.weights:,}, {totals['weight_bytes']:,} bytes"),
            ("parameters", f"{network.parameters:,} with biases and normalisations"),
            ("activations", f"{network.activations:,}, {totals['array_activations']:,} of them by layers of the array"),
            ("ops/byte", f"{ratio:,.1f}: 2 x MACs / {totals['operand_bytes']:,} bytes of weights, inputs and outputs of each layer"),
            ("host", f"{totals['host_ops']:,} ops, {totals['host_bytes']:,} bytes")):
        table.add_row(name, Text(value))
    return table


def operator_text(node: ArrayOperator) -> str:
    """``conv 3x3 s2 g32 +bn+relu``; sizes are height x width."""
    layer = node.layer
    words = [layer.kind]
    if layer.kind == "conv":
        words.append(f"{layer.FY}x{layer.FX}")
        words += _unless_one("s", layer.SY, layer.SX) + _unless_one("d", layer.DY, layer.DX)
    if layer.G > 1:
        words.append(f"g{layer.G}")
    if node.folded:
        words.append("".join(f"+{short(op)}" for op in node.folded))
    if node.repeat > 1:
        words.append(f"{node.repeat} times")
    return " ".join(words)


def shape_text(node: Operator) -> str:
    """``64x112x112``: channels, height, width; the batch in front where there is one."""
    if node.output.shape == UNKNOWN_SHAPE:
        return "unknown"
    batch, *rest = node.output.shape
    return "x".join(map(str, rest if batch == 1 and rest else node.output.shape))


def short(op: str) -> str:
    return ABBREVIATIONS.get(op, op)


def _unless_one(letter: str, y: int, x: int) -> list[str]:
    return [] if y == x == 1 else [f"{letter}{y}"] if y == x else [f"{letter}{y}x{x}"]


def number_table(*heads: str, title: str | None = None) -> Table:
    """A table whose columns are numbers, but for heads that end in ``left``."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for head in heads:
        text = head.removesuffix(" left")
        table.add_column(text, justify="right" if text == head else "left", overflow="fold")
    return table


def _row(table: Table, *cells: str | int) -> None:
    table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else cell) for cell in cells))
