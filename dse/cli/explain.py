"""``nearmac explain``: why a layer takes the cycles that it takes."""

from __future__ import annotations

from dse.cli import options as opt


def explain(
    workload: opt.Workload,
    board: opt.BoardName,
    layer: opt.LayerName = None,
    array: opt.Array = None,
    precision: opt.Precision = None,
    buffers: opt.Buffers = None,
    multiplier: opt.MultiplierName = None,
    accumulate: opt.AccumulateName = None,
    drains: opt.Drains = None,
    output_multiplier: opt.OutputMultiplierName = None,
    accumulator_bits: opt.AccumulatorBits = None,
    clock_mhz: opt.ClockMHz = None,
    bus_bits: opt.BusBits = None,
    design: opt.DesignFile = None,
    plot: opt.Plot = None,
    input_shape: opt.InputShapes = None,
    json: opt.Json = False,
) -> int:
    """Show every assumption and formula of a layer's prediction with its numbers, and what more of each resource would buy."""
    from boards.loader import load_board
    from dse.cli.console import Reporter, print_json, print_text
    from dse.cli.design_options import DesignOptions
    from dse.cli.pictures import picture_file, save_picture
    from dse.cli.workload import read_target, read_workload
    from dse.explain.explain import explain as explain_choice

    chosen = DesignOptions(array=array, precision=precision, buffers=buffers, multiplier=multiplier, accumulate=accumulate,
                           drains=drains, output_multiplier=output_multiplier, accumulator_bits=accumulator_bits,
                           clock_mhz=clock_mhz, bus_bits=bus_bits, design=design)
    shapes = opt.parse_input_shapes(input_shape)
    # A layer of a network has a precision of its own.
    parsed = read_target(workload, layer, chosen, shapes).options.parse()
    what, where = read_workload(workload, layer, shapes), load_board(board)
    with picture_file(plot) as picture, Reporter() as reporter:
        reporter.stage("choosing the mapping" if parsed.design else "choosing the design")
        choice = parsed.choose(what, where)
        reporter.stage("mapping again with more of each resource")
        explanation = explain_choice(choice, where, workload=workload if layer is None else f"{workload} --layer {layer}")
        if picture:
            from dse.plot.explanation import plot_explanation

            save_picture(plot_explanation(explanation), picture)
    if json:
        print_json(explanation.to_dict())
    else:
        print_text(explanation.text)
    return 0
