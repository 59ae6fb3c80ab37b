"""Whether a layer's data fits into a board's external memory: on boards where blocks on the chip stand in for one, few do."""

from __future__ import annotations

from boards.errors import InputError
from boards.schema import Board
from hdl.layer import Layer


def layer_bytes(layer: Layer, weight_bits: int, activation_bits: int) -> int:
    """Bytes of a layer's weights, input and output, elements at their own width: padding, parameters and program come on top."""
    return -(-(layer.weights * weight_bits + (layer.inputs + layer.outputs) * activation_bits) // 8)


def excess(layer: Layer, board: Board, weight_bits: int, activation_bits: int) -> str | None:
    """What is wrong when the layer's data certainly exceeds the board's memory, or ``None``."""
    size = board.memory.size_bytes if board.memory else None
    needed = layer_bytes(layer, weight_bits, activation_bits)
    if size is None or needed <= size:
        return None
    return f"weights, input and output are {needed:,} bytes, the external memory of {board.name} has {size:,}"


def check_external_memory(layer: Layer, board: Board, weight_bits: int, activation_bits: int) -> None:
    """Raise InputError when the layer's data certainly exceeds the board's memory."""
    wrong = excess(layer, board, weight_bits, activation_bits)
    if wrong:
        raise InputError(wrong, where="--board", value=board.name, suggestion="use a smaller layer or batch, fewer bits, or another board")
