"""Tensors to external memory and back: bits, words, beats.

Activations are pixel-major, the channels of a pixel in words of ``cols`` elements; weights and parameters lie in the order in which
tiles load them. `docs/memory.md` shows the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dse.schedule.compiler import MemoryMap, Program, parameter_stride, weight_stride
from dse.schedule.tiling import TilePlan
from hdl.design import MULTIPLIER_BITS
from sim.golden import LayerTensors

Bytes = NDArray[np.uint8]
Put = Callable[[int, Bytes], None]  # writes bytes at a beat address
Integers = NDArray[np.int64]


def pack_memory(plan: TilePlan, program: Program, tensors: LayerTensors) -> Bytes:
    """The memory image before the run, uint8: program, parameters, weights, input; the output region is zero.

    Raises nothing that the tensors could cause: check them with :func:`sim.golden.check_tensors`.
    """
    return pack_memories([plan], [program], [tensors])


def pack_memories(plans: Sequence[TilePlan], programs: Sequence[Program], tensors: Sequence[LayerTensors]) -> Bytes:
    """The memory image of layers that lie one behind the other; the input of one that is on chip already is not looked at."""
    bus_bytes = plans[0].design.bus_bits // 8
    image = np.zeros(programs[-1].memory.beats * bus_bytes, np.uint8)

    def put(address: int, data: Bytes) -> None:
        image[address * bus_bytes:address * bus_bytes + data.size] = data

    for plan, program, values in zip(plans, programs, tensors, strict=True):
        memory = program.memory
        put(memory.program.address, _pack_program(program, bus_bytes))
        if not plan.input_is_kept:
            put(memory.input.address, _pack_input(plan, values.input))
        _pack_weights(plan, memory, values, put)
        _pack_parameters(plan, memory, values, put)
    return image


def unpack_output(plan: TilePlan, memory: MemoryMap, image: Bytes) -> Integers:
    """The output tensor (B, K, OY, OX) of an image after the run; 1-bit elements are -1 and +1."""
    design, layer = plan.design, plan.layer
    bus_bytes, bits = design.bus_bits // 8, design.activation_bits
    start, pixels = memory.output.address * bus_bytes, layer.B * layer.OY * layer.OX
    data = image[start:start + memory.output.beats * bus_bytes].reshape(pixels, -1)
    elements = _unpack_elements(data, bits)
    slot = design.word_slot_bits("output") // bits
    words = elements.shape[1] // slot
    channels = elements.reshape(pixels, words, slot)[:, :, :design.cols].reshape(pixels, -1)[:, :layer.K].astype(np.int64)
    if bits == 1:
        channels = 2 * channels - 1
    elif layer.outputs_signed:
        channels = np.where(channels >= 1 << bits - 1, channels - (1 << bits), channels)
    return np.ascontiguousarray(channels.reshape(layer.B, layer.OY, layer.OX, layer.K).transpose(0, 3, 1, 2))


def encode_elements(values: Integers, bits: int) -> NDArray[np.uint16]:
    """Values to their bit patterns: two's complement or unsigned; bit 1 for +1 and 0 for -1."""
    if bits == 1:
        return (values > 0).astype(np.uint16)
    return (values & (1 << bits) - 1).astype(np.uint16)


def _pack_program(program: Program, bus_bytes: int) -> Bytes:
    words = np.array(program.words, "<u4").view(np.uint8).reshape(-1, 4)
    if bus_bytes <= 4:
        return words.reshape(-1)
    padded = np.zeros((len(words), bus_bytes), np.uint8)
    padded[:, :4] = words
    return padded.reshape(-1)


def _pack_input(plan: TilePlan, tensor: Integers) -> Bytes:
    design, layer, group = plan.design, plan.layer, plan.grouping
    bits = design.activation_bits
    # Unused elements hold the zero point, so that they contribute nothing to 1-bit weights either; for XNOR they are bit 0.
    filler = -1 if bits == 1 else layer.input_zero_point
    slot = design.word_slot_bits("input") // bits
    words = plan.pixel_beats * design.bus_bits // design.word_slot_bits("input")
    pixels = layer.B * layer.IY * layer.IX
    image = np.full((pixels, words * slot), encode_elements(np.array([filler]), bits)[0], np.uint16)
    positions = np.array([word * slot + element for word, element in
                          (group.channel_slot(channel, design.cols) for channel in range(layer.C))])
    image[:, positions] = encode_elements(tensor.transpose(0, 2, 3, 1).reshape(pixels, layer.C), bits)
    return _pack_elements(image, bits)


def _pack_weights(plan: TilePlan, memory: MemoryMap, tensors: LayerTensors, put: Put) -> None:
    design, layer, group = plan.design, plan.layer, plan.grouping
    bits, cols = design.weight_bits, design.cols
    inputs, outputs = group.group_inputs, group.group_outputs
    filler = 1 if bits == 1 else 0
    weight = tensors.weight  # (K, C/G, FY, FX)
    if group.packed == 1:
        runs = np.full((layer.G, outputs, group.words * cols, layer.FY, layer.FX), filler, np.int64)
        runs[:, :, :inputs] = weight.reshape(layer.G, outputs, inputs, layer.FY, layer.FX)
    else:
        runs = np.full((group.count, outputs, cols, layer.FY, layer.FX), filler, np.int64)
        grouped = weight.reshape(group.count, group.packed, outputs, inputs, layer.FY, layer.FX)
        for member in range(group.packed):
            runs[:, :, member * inputs:(member + 1) * inputs] = grouped[:, member]
    # (supergroup, record, FY, FX, word, column)
    runs = runs.reshape(group.count, outputs, group.words, cols, layer.FY, layer.FX).transpose(0, 1, 4, 5, 2, 3)
    words = encode_elements(runs, bits)
    slot = design.word_slot_bits("weight") // bits
    stride, channels, groups = weight_stride(plan), len(plan.loops["C"]), len(plan.loops["K"])
    for s_at, s in enumerate(plan.loops["S"]):
        for k_at, k in enumerate(plan.loops["K"]):
            records = slice(k.start, k.start + k.size) if group.packed == 1 else slice(0, outputs)
            for c_at, c in enumerate(plan.loops["C"]):
                tile = words[s.start:s.start + s.size, records, :, :, c.start:c.start + c.size]
                count = tile.shape[0] * tile.shape[1]
                vectors = plan.vectors(c)
                run = np.zeros((count, plan.run_entries(c) * plan.weight_format.words_per_entry, slot), np.uint16)
                run[:, :vectors, :cols] = tile.reshape(count, vectors, cols)
                put(memory.weights.address + ((s_at * groups + k_at) * channels + c_at) * stride,
                    _pack_elements(run.reshape(1, -1), bits))


def _pack_parameters(plan: TilePlan, memory: MemoryMap, tensors: LayerTensors, put: Put) -> None:
    design, group = plan.design, plan.grouping
    size = design.parameter_beats * design.bus_bits // 8
    entries = np.zeros((plan.layer.K, size), np.uint8)
    for channel in range(plan.layer.K):
        entries[channel] = np.frombuffer(_parameter_word(plan, tensors, channel).to_bytes(size, "little"), np.uint8)
    stride, groups = parameter_stride(plan), len(plan.loops["K"])
    for s_at, s in enumerate(plan.loops["S"]):
        for k_at, k in enumerate(plan.loops["K"]):
            first = s.start * group.outputs + k.start
            put(memory.parameters.address + (s_at * groups + k_at) * stride,
                entries[first:first + s.size * k.size].reshape(-1))


def _parameter_word(plan: TilePlan, tensors: LayerTensors, channel: int) -> int:
    """See :func:`hdl.drain.parameter_layout`."""
    width = plan.design.accumulator_bits
    if plan.design.has_threshold_output:
        assert tensors.threshold is not None and tensors.flip is not None
        width += 1
        return int(tensors.threshold[channel]) & (1 << width) - 1 | int(tensors.flip[channel]) << width
    return (int(tensors.bias[channel]) & (1 << width) - 1 | int(tensors.multiplier[channel]) << width
            | int(tensors.shift[channel]) << width + MULTIPLIER_BITS)


def _pack_elements(rows: NDArray[np.uint16], bits: int) -> Bytes:
    """Elements of each row, first in the lowest bits, to bytes; a row is whole bytes."""
    if bits == 16:
        return rows.astype("<u2").reshape(-1).view(np.uint8)
    if bits == 8:
        return rows.astype(np.uint8).reshape(-1)
    per_byte = 8 // bits
    parts = rows.astype(np.uint8).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    return np.bitwise_or.reduce(parts << shifts, axis=1).astype(np.uint8)


def _unpack_elements(data: Bytes, bits: int) -> NDArray[np.uint16]:
    if bits == 16:
        return np.ascontiguousarray(data).view("<u2").astype(np.uint16)
    if bits == 8:
        return data.astype(np.uint16)
    per_byte = 8 // bits
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    return ((data[:, :, None] >> shifts) & (1 << bits) - 1).reshape(len(data), -1).astype(np.uint16)
