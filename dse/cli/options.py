"""Declarations of the arguments that commands share; parsing is in ``design_options``, so that ``--help`` needs typer alone."""

from __future__ import annotations

from typing import Annotated

import typer

_WORKLOAD = typer.Argument(metavar="WORKLOAD", show_default=False, help=(
    'A network of "nearmac networks", a layer in place, such as "conv K=16 C=8 OY=14 OX=14 FY=3 FX=3 P=1", or the path of an .onnx, '
    'of a layer, network, ZigZag or Timeloop .yaml or of a SCALE-Sim .csv.'))
Workload = Annotated[str, _WORKLOAD]
OptionalWorkload = Annotated[str | None, _WORKLOAD]
InputShapes = Annotated[list[str] | None, typer.Option("--input-shape", metavar="NAME=1x3x224x224", show_default=False, help=(
    "Size of an input of an ONNX model, where the model has none; once for each such input."))]
BoardName = Annotated[str, typer.Option("--board", metavar="NAME", help="A board of `nearmac boards`, or the path of your own .yaml.",
                                        show_default=False)]
LayerName = Annotated[str | None, typer.Option("--layer", metavar="NAME", show_default=False, help=(
    "A layer of the workload, or several that follow each other: a+b."))]
Array = Annotated[str | None, typer.Option("--array", metavar="ROWSxCOLSxLANES", show_default=False, help=(
    "Output channels x input channels x bands of output rows computed in parallel."))]
Precision = Annotated[str | None, typer.Option("--precision", metavar="wNaM", help=(
    "Weight and activation bits, each 1, 2, 4, 8 or 16. Default: the network's own, else w8a8."), show_default=False)]
Buffers = Annotated[str | None, typer.Option("--buffers", metavar="KIND=SIZE,..", show_default=False, help=(
    "Total bytes of the input, weight, output and psum banks: input=8KiB,weight=16KiB; psum=0B leaves those out."))]
MultiplierName = Annotated[str | None, typer.Option("--multiplier", metavar="dsp|dsp_pair|lut", show_default=False, help=(
    "What the array's products are made of: a DSP block each, one for the products of two rows, or look-up tables."))]
AccumulateName = Annotated[str | None, typer.Option("--accumulate", metavar="tree|per_column", show_default=False, help=(
    "Sum the columns' products at once, or keep a sum in every column."))]
Drains = Annotated[int | None, typer.Option("--drains", metavar="N", help="Parallel result paths.", show_default=False)]
OutputMultiplierName = Annotated[str | None, typer.Option("--output-multiplier", metavar="dsp|lut|serial", show_default=False, help=(
    "Multiplier of the output stage; serial takes 10 cycles a result."))]
AccumulatorBits = Annotated[int | None, typer.Option("--accumulator-bits", metavar="N", show_default=False, help=(
    "Accumulator width, 8 to 48. Default: what the layer needs."))]
ClockMHz = Annotated[float | None, typer.Option("--clock-mhz", metavar="F", help="Core clock. Default: the board's.",
                                                show_default=False)]
BusBits = Annotated[int | None, typer.Option("--bus-bits", metavar="N", show_default=False, help=(
    "External memory channel: 16, 32, 64, 128 or 256. Default: the narrowest that takes all the memory offers."))]
Chaining = Annotated[bool, typer.Option("--chaining", help=(
    "Build what keeps a tensor on chip from one layer to the next, and use it where it fits."))]
DesignFile = Annotated[str | None, typer.Option("--design", metavar="FILE", help=(
    "A whole design from a .yaml, instead of the options above."), show_default=False)]
ScaleSimConfig = Annotated[str | None, typer.Option("--scalesim-config", metavar="FILE", show_default=False, help=(
    "A SCALE-Sim .cfg: its array and SRAM sizes to start from, and its own count of cycles beside ours."))]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the random tensors.")]
Plot = Annotated[str | None, typer.Option("--plot", metavar="FILE", show_default=False, help=(
    "Write a picture too: .svg, .png or .pdf (needs the extra report)."))]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")]


def parse_input_shapes(texts: list[str] | None) -> dict[str, tuple[int, ...]]:
    """``["images=1x3x320x320"]`` -> sizes by name. Raises InputError."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts or ():
        name, equals, sizes = text.rpartition("=")
        numbers = sizes.split("x") if sizes else []  # a scalar has no sizes
        if not equals or not name or not all(number.isascii() and number.isdigit() and len(number) <= 18 for number in numbers):
            from boards.errors import InputError

            raise InputError("not a shape of an input", where="--input-shape", value=text, allowed="NAME=1x3x224x224")
        if name in found:
            from boards.errors import InputError

            raise InputError("given twice", where="--input-shape", value=name)
        found[name] = tuple(map(int, numbers))
    return found
