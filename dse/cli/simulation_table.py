"""The tables that ``nearmac simulate`` prints."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from boards.schema import Board
from dse.estimate.bounds import communication_lower_bound_bytes, compulsory_bytes
from dse.estimate.calibration import calibration
from dse.estimate.resources import Resources, usable
from dse.simulate import LayerReport
from hdl.design import Design

BUFFERS = ("input", "weight", "output", "psum")


def simulation_tables(report: LayerReport, board: Board) -> list[Table]:
    """The design that ran, and what was measured."""
    return [design_table(report.workload, report.design, report.resources, str(report.choice.plan.tiling), board),
            result_table(report, board)]


def rows_table(title: str, rows: list[tuple[str, str | Text]]) -> Table:
    """A table of two columns: what, and its value."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value if isinstance(value, Text) else Text(value))
    return table


def design_table(workload: str, design: Design, resources: Resources, tiling: str, board: Board) -> Table:
    """Board, design, and its resources beside those of the board."""
    have = usable(board)
    banks = ", ".join(f"{kind} {getattr(design, f'{kind}_bytes'):,} B" for kind in BUFFERS)
    output = "thresholds" if design.has_threshold_output else f"{design.output_multiplier} multiplier"
    products = "XNOR-popcount" if design.is_xnor else f"{design.multiplier} multipliers"
    return rows_table("Design", [
        ("workload", workload),
        ("board", f"{board.name}, {board.device.name}"),
        ("array", f"{design.array} (rows x cols x lanes), {design.precision}, {products}, accumulate {design.accumulate}, "
                  f"{design.accumulator_bits}-bit accumulators"),
        ("output stage", f"{design.drains} drain{'s' if design.drains > 1 else ''}, {output}"),
        ("buffers", banks + (", with chaining" if design.chaining else "")),
        ("external channel", f"{design.bus_bits} bits at {design.clock_mhz:g} MHz"),
        ("DSP blocks", f"{resources.dsps} of {have['dsps']}"),
        ("block RAMs (18 Kb)", f"{resources.block_rams} of {have['block_rams']}"),
        ("LUTs, FFs", f"{resources.luts:,} of {have['luts']:,}, {resources.ffs:,} of {have['ffs']:,} ({calibration(design.family).label})"),
        ("tiling", tiling),
    ])


def result_table(report: LayerReport, board: Board) -> Table:
    """Measured against predicted, rates, and what bounds them. 1 MAC is 2 ops."""
    data, result, prediction = report.to_dict(), report.result, report.choice.prediction
    layer, design = report.choice.plan.layer, report.design
    kind, bound_cycles = prediction.bound
    limits = {"compute": prediction.compute_bound_cycles, "memory": prediction.memory_bound_cycles,
              "drain": prediction.drain_bound_cycles}
    others = ", ".join(f"{name} {cycles:,}" for name, cycles in limits.items() if name != kind)
    bits = (Text(f"exact, all {layer.outputs:,} outputs as the golden model has them") if report.bit_exact
            else _bad(f"MISMATCH: {report.differing_outputs:,} of {layer.outputs:,} outputs differ from the golden model"))
    speed = f"{result.cycles_per_s:,.0f} cycles/s, {result.wall_s:.2f} s, after {result.build_s:.2f} s of preparation"
    return rows_table("Result", [
        ("engine", result.engine),
        ("cycles", Text(f"{result.cycles:,} with random memory stalls; {prediction.cycles:,} predicted without") if report.stalled
         else _compared(result.cycles, prediction.cycles)),
        ("bytes read", _compared(data["bytes_read"], data["predicted_bytes_read"])),
        ("bytes written", _compared(data["bytes_written"], data["predicted_bytes_written"])),
        ("bits", bits),
        ("time on device", f"{report.seconds_on_device * 1e3:,.4g} ms at {design.clock_mhz:g} MHz"),
        ("throughput", f"{data['throughput_gops']:.4g} Gop/s (1 MAC = 2 ops; {layer.macs:,} MACs)"),
        ("utilization", f"{data['utilization']:.1%} of {design.macs_per_cycle} MACs a cycle"),
        ("issue fraction", f"{data['issue_fraction']:.1%} of the cycles issue an operand vector"),
        ("external memory", f"{data['external_mb_s']:,.4g} MB/s of {board.offered_mb_s:,.4g} MB/s offered"),
        ("bound", f"{kind}: {bound_cycles:,} cycles; {others}; first load {prediction.first_load_cycles:,}, "
                  f"last store {prediction.last_store_cycles:,}"),
        ("least bytes", f"{compulsory_bytes(design, layer):,} compulsory; "
                        f"{communication_lower_bound_bytes(design, layer):,} lower bound for these buffers"),
        ("simulation", speed),
    ])


def _compared(measured: int, predicted: int) -> Text:
    if measured == predicted:
        return Text(f"{measured:,} simulated = predicted")
    return _bad(f"MISMATCH: {measured:,} simulated, {predicted:,} predicted")


def _bad(text: str) -> Text:
    return Text(text, style="bold red")
