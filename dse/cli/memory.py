"""``nearmac memory``: how many bytes a workload takes, where they go, and what still fits in a device."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from dse.cli import options as opt

if TYPE_CHECKING:
    from dse.cli.files import OutputFile


def memory(
    workload: opt.Workload,
    batch: Annotated[int, typer.Option("--batch", metavar="N", help="Inputs at once: times the workload's own batch.")] = 1,
    input_shape: Annotated[list[str] | None, typer.Option("--input-shape", metavar="NAME=1x3x224x224", show_default=False, help=(
        "Size of an input, batch x channels x height x width; once for each such input."))] = None,
    bits: Annotated[int | None, typer.Option("--bits", metavar="N", show_default=False, help=(
        "Of every weight and activation, 1 to 64. Default: the workload's own, else 8."))] = None,
    weights_bits: Annotated[int | None, typer.Option("--weights-bits", metavar="N", show_default=False, help=(
        "Of every trained value, its gradient and the optimiser's state."))] = None,
    activations_bits: Annotated[int | None, typer.Option("--activations-bits", metavar="N", show_default=False, help=(
        "Of every activation and its gradient."))] = None,
    training: Annotated[bool, typer.Option("--training", help="Keep activations for the backward pass, and count gradients.")] = False,
    optimizer: Annotated[str, typer.Option("--optimizer", metavar="none|momentum|adam", help=(
        "What training keeps beside each weight and its gradient: nothing, one value, two."))] = "none",
    recompute: Annotated[str, typer.Option("--recompute", metavar="none|cheap|sqrt", help=(
        "What training gives up and computes again: outputs of normalisation, activation and pooling; or all but what crosses "
        "sqrt(n) segments."))] = "none",
    in_place: Annotated[bool, typer.Option("--in-place", help=(
        "Element-wise operators write over an operand where nobody needs it any more."))] = False,
    unfused: Annotated[bool, typer.Option("--unfused", help=(
        "Normalisations and activations write tensors of their own, as in a framework that fuses nothing."))] = False,
    lowering: Annotated[str, typer.Option("--lowering", metavar="direct|im2col", help=(
        "im2col: a convolution's input lies there once more, as the matrix of a matrix product."))] = "direct",
    device: Annotated[str | None, typer.Option("--device", metavar="NAME", show_default=False, help=(
        "A reference machine or a board of `nearmac boards`, or a board's .yaml: does it fit, and what is left."))] = None,
    plot: Annotated[str | None, typer.Option("--plot", metavar="FILE.svg|png|pdf", show_default=False, help=(
        "Draw the memory in use over the network's depth."))] = None,
    json: opt.Json = False,
) -> int:
    """Bytes of weights, activations, gradients, optimiser state and lowering buffers; layer by layer; what fits in a device."""
    from boards.errors import InputError
    from dse.cli.console import print_json, print_remarks, print_tables
    from dse.footprint.footprint import Footprint, Options
    from dse.footprint.resize import load_sized
    from dse.footprint.room import load_capacity, room

    if bits is not None and (weights_bits is not None or activations_bits is not None):
        raise InputError("says the same as --weights-bits and --activations-bits", where="--bits", value=bits, suggestion="leave one out")
    options = Options(batch=batch, weight_bits=bits if weights_bits is None else weights_bits,
                      activation_bits=bits if activations_bits is None else activations_bits, is_training=training, optimizer=optimizer,
                      recompute=recompute, in_place=in_place, is_unfused=unfused, lowering=lowering)
    capacity = None if device is None else load_capacity(device)
    shapes = opt.parse_input_shapes(input_shape)
    with ExitStack() as stack:
        picture = None if plot is None else stack.enter_context(_picture(plot))
        network = load_sized(workload, shapes)
        footprint = Footprint(network, options)
        left = None if capacity is None else room(footprint, capacity)
        if picture is not None:
            from dse.footprint.figure import plot as draw

            draw(footprint, picture.temporary, capacity)
            picture.commit()
    print_remarks((*network.remarks, *footprint.remarks))
    if json:
        print_json({**footprint.to_dict(), "device": None if left is None else left.to_dict()})
    else:
        from dse.cli.memory_tables import memory_tables

        print_tables(*memory_tables(footprint, left))
    return 0


def _picture(path: str) -> OutputFile:
    """The file to draw in. Raises InputError for a name that is no picture's, before any work."""
    from dse.cli.files import OutputFile
    from dse.plot.style import check_path

    check_path(path)
    return OutputFile(path, option="--plot")
