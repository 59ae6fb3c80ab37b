"""A bank: on-chip memory with one write port and one read port, read in words."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.ram import RamShape


class Bank(wiring.Component):
    """RAM of ``shape.depth`` entries, written by whole entries and read by words.

    The word is in ``read_data`` one cycle after ``read_enable`` and stays until the next read. Throughput: one write and one read
    a cycle. The program never reads and writes one entry in one cycle, so nothing says what such a read would give.

    Parameters
    ----------
    shape: depth and slices; each slice is a memory, inferred as block RAM, or as distributed RAM where the shape says so.
    word_bits: bits of a word.
    slot_bits: distance between the words of an entry; only used when an entry holds several.
    words_per_entry: a power of two; the low bits of ``read_word`` choose among them.

    Members
    -------
    write_enable, write_entry, write_data: an entry; ``write_data`` has all bits of the slices.
    read_enable, read_word, read_data: a word.
    """

    def __init__(self, *, shape: RamShape, word_bits: int, slot_bits: int = 0, words_per_entry: int = 1) -> None:
        self._shape, self._word_bits, self._slot_bits, self._words = shape, word_bits, slot_bits, words_per_entry
        entry_bits = (shape.depth - 1).bit_length()
        super().__init__({
            "write_enable": In(1),
            "write_entry": In(entry_bits),
            "write_data": In(sum(shape.slice_bits)),
            "read_enable": In(1),
            "read_word": In(entry_bits + (words_per_entry - 1).bit_length()),
            "read_data": Out(word_bits),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sub_bits = (self._words - 1).bit_length()
        parts, low = [], 0
        for number, bits in enumerate(self._shape.slice_bits):
            # Without the attribute, families whose RAMs leave a collision undefined would build logic to emulate one.
            memory = Memory(shape=unsigned(bits), depth=self._shape.depth, init=[], attrs={
                "no_rw_check": 1, "ram_style": "distributed" if self._shape.cells else "block"})
            m.submodules[f"ram_{number}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.en.eq(self.write_enable),
                write.addr.eq(self.write_entry),
                write.data.eq(self.write_data[low:low + bits]),
                read.en.eq(self.read_enable),
                read.addr.eq(self.read_word[sub_bits:]),
            ]
            parts.append(read.data)
            low += bits
        entry = Cat(parts)
        if sub_bits:
            word = Signal(sub_bits)
            with m.If(self.read_enable):
                m.d.sync += word.eq(self.read_word[:sub_bits])
            m.d.comb += self.read_data.eq(entry.word_select(word, self._slot_bits)[:self._word_bits])
        else:
            m.d.comb += self.read_data.eq(entry[:self._word_bits])
        return m
