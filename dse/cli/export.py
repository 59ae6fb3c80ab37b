"""``nearmac export``: a network or layer as a file of ours or of another tool."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import options as opt


def export(
    workload: opt.Workload,
    format: Annotated[str, typer.Option("--format", metavar="yaml|scalesim|zigzag|timeloop", show_default=False, help=(
        "Whose format. yaml is ours."))],
    out: Annotated[str, typer.Option("--out", metavar="FILE_OR_DIR", show_default=False, help=(
        "The file; for several layers as Timeloop problems, which are a file each, a new or empty directory."))],
    layer: opt.LayerName = None,
    precision: opt.Precision = None,
    input_shape: opt.InputShapes = None,
    json: opt.Json = False,
) -> int:
    """Write a network or a layer in the format of another tool, so that a result can be checked there; say what the format lacks."""
    from dse.cli.exporting import run

    return run(workload, layer, precision, format, out, json=json, input_shapes=opt.parse_input_shapes(input_shape))
