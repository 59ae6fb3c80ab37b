"""The program: instruction words of the sequencer and the fields they set.

A program is up to 512 words of 32 bits: a header, code, then data (constants, class tables, level tables, loop counters).
The sequencer is an accumulator machine that, while one phase runs, computes the *fields* of the next tile; it does so in
constant time, whatever the tile. `docs/program.md` describes the format.

Instruction word::

    [8:0]   address    operand's word address (tables are aligned)
    [10:9]  mode       Mode: what is OR-ed into the address
    [13:11] level      loop level of CLASS, PAIR and STEP
    [16:14] level_b    second loop level of PAIR
    [19:17] (zero)     with IMMEDIATE, [19:0] is the signed value instead
    [26:20] field      destination field + 1, or 0 for none
    [29:27] opcode     Opcode
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from hdl.design import PROGRAM_DEPTH, Design
from hdl.errors import InputError

MAGIC = 0x4E4D
VERSION = 1
HEADER = MAGIC << 16 | VERSION
LEVELS = 6
FIRST_TILE_LEVEL = 7
"""Level under which tables hold what applies to the first tile, before any loop has advanced."""
IMMEDIATE_BITS = 20
EXTERNAL_ADDRESS_BITS = 28
LENGTH_BITS = 16
COORDINATE_BITS = 14
"""Signed grid coordinate within a tile (rows and columns up to 4,095 plus padding)."""
TAP_BITS = 6
RECORD_BITS = 6
"""Of the number of a tile's weight records, beyond those of an entry: each of up to 64 rows has some."""


class Opcode(IntEnum):
    LOAD = 0  # acc = operand
    ADD = 1  # acc += operand
    XOR = 2  # acc ^= operand
    STEP = 3  # one loop level of the tile odometer: acc counts down, operand reloads it
    STORE = 4  # operand = acc
    IMMEDIATE = 5  # acc = sign-extended [19:0]
    ENTRY = 6  # the tile routine begins with the next instruction
    END = 7  # the tile's fields are complete


class Mode(IntEnum):
    DIRECT = 0
    CLASS = 1  # {last, first} of one level: tables of 4 words
    PAIR = 2  # {last, first} of two levels: tables of 16 words
    LEVEL = 3  # the outermost level that advanced: tables of 8 words


class Stage(IntEnum):
    """How many phases after its evaluation a field is used."""

    CONFIG = 0  # at any time: constant over the program
    LOAD = 1
    COMPUTE = 2
    STORE = 3


@dataclass(frozen=True)
class Field:
    """A register that the program sets. ``bits`` may exceed 32: then it is set in chunks of 32."""

    name: str
    stage: Stage
    bits: int
    index: int


@lru_cache(maxsize=64)
def fields(design: Design) -> Mapping[str, Field]:
    """Every field of a design, by name, in index order; fields that the design has no use for are absent."""
    words_in = address_bits(design, "input")
    words_w = address_bits(design, "weight")
    entries_in, entries_w = entry_bits(design, "input"), entry_bits(design, "weight")
    entries_out, entries_p = entry_bits(design, "output"), entry_bits(design, "parameter")
    value, coordinate = design.activation_bits + 1, COORDINATE_BITS
    tile = min(12, entries_out)  # an output tile has at most as many pixels as the output bank has entries
    rows_in_tile = min(12, tile + max(1, (design.lanes - 1).bit_length()))
    several_lanes = design.lanes > 1
    table: list[tuple[str, Stage, int] | None] = [
        # the layer
        ("signed", Stage.CONFIG, 1) if not design.is_xnor else None,
        ("zero_point", Stage.CONFIG, value) if not design.is_xnor else None,
        ("low", Stage.CONFIG, value) if not design.has_threshold_output else None,
        ("high", Stage.CONFIG, value) if not design.has_threshold_output else None,
        ("output_zero_point", Stage.CONFIG, value) if not design.has_threshold_output else None,
        ("fy_last", Stage.CONFIG, TAP_BITS),
        ("fx_last", Stage.CONFIG, TAP_BITS),
        ("stride_y", Stage.CONFIG, 7),
        ("stride_x", Stage.CONFIG, 7),
        ("dilation_y", Stage.CONFIG, 7),
        ("dilation_x", Stage.CONFIG, 7),
        # input bank strides, in words: one tap, one pixel, one supergroup
        ("tap_y_words", Stage.CONFIG, words_in),
        ("tap_x_words", Stage.CONFIG, words_in),
        ("pixel_y_words", Stage.CONFIG, words_in),
        ("pixel_x_words", Stage.CONFIG, words_in),
        ("group_words", Stage.CONFIG, words_in),
        # input bank strides, in entries
        ("row_entries", Stage.CONFIG, entries_in),
        ("pixel_entries", Stage.CONFIG, entries_in),
        # external strides, in beats
        ("input_row_beats", Stage.CONFIG, EXTERNAL_ADDRESS_BITS),
        ("input_pixel_beats", Stage.CONFIG, EXTERNAL_ADDRESS_BITS),
        ("output_row_beats", Stage.CONFIG, EXTERNAL_ADDRESS_BITS),
        ("output_pixel_beats", Stage.CONFIG, EXTERNAL_ADDRESS_BITS),
        # groups
        ("row_pattern", Stage.CONFIG, design.rows),
        ("row_slots", Stage.CONFIG, design.rows * slot_bits(design)) if has_columns(design) else None,
        ("column_slots", Stage.CONFIG, design.cols * slot_bits(design)) if has_columns(design) else None,
        ("slots_per_pass", Stage.CONFIG, slot_bits(design)) if has_columns(design) else None,
        ("passes_last", Stage.CONFIG, slot_bits(design)) if has_columns(design) else None,
        # the next layer, if it runs in the same go
        ("next_program_address", Stage.CONFIG, EXTERNAL_ADDRESS_BITS) if design.chaining else None,
        ("next_program_beats", Stage.CONFIG, LENGTH_BITS) if design.chaining else None,
        ("store_on_chip", Stage.CONFIG, 1) if design.chaining else None,
        ("next_span_last", Stage.CONFIG, coordinate) if design.chaining and several_lanes else None,
        ("next_band_rows", Stage.CONFIG, coordinate) if design.chaining and several_lanes else None,
        ("next_band_entries", Stage.CONFIG, entries_in) if design.chaining and several_lanes else None,
        # load
        ("load_input", Stage.LOAD, 1),
        ("load_weights", Stage.LOAD, 1),
        ("load_parameters", Stage.LOAD, 1),
        ("input_address", Stage.LOAD, EXTERNAL_ADDRESS_BITS),
        ("weight_address", Stage.LOAD, EXTERNAL_ADDRESS_BITS),
        ("parameter_address", Stage.LOAD, EXTERNAL_ADDRESS_BITS),
        ("weight_beats", Stage.LOAD, LENGTH_BITS),
        ("parameter_beats", Stage.LOAD, LENGTH_BITS),
        ("input_rows_last", Stage.LOAD, 12),
        ("input_bursts_last", Stage.LOAD, 12),
        ("input_beats", Stage.LOAD, LENGTH_BITS),
        ("input_pixels_last", Stage.LOAD, 12),
        ("input_entries_last", Stage.LOAD, entries_in),
        ("input_entry", Stage.LOAD, entries_in),
        ("input_row_first", Stage.LOAD, coordinate) if several_lanes else None,
        ("input_span_last", Stage.LOAD, coordinate) if several_lanes else None,
        ("load_band_rows", Stage.LOAD, coordinate) if several_lanes else None,
        ("load_band_entries", Stage.LOAD, entries_in) if several_lanes else None,
        ("weight_entry", Stage.LOAD, entries_w),
        ("run_entries_last", Stage.LOAD, entries_w),
        ("records_last", Stage.LOAD, entries_w + RECORD_BITS),
        ("parameter_entry", Stage.LOAD, entries_p),
        # compute
        ("input_word", Stage.COMPUTE, words_in),
        ("weight_word", Stage.COMPUTE, words_w),
        ("parameter_word", Stage.COMPUTE, entries_p),
        ("words_last", Stage.COMPUTE, words_in),
        ("run_words", Stage.COMPUTE, words_w),
        ("blocks_last", Stage.COMPUTE, words_w),
        ("groups_last", Stage.COMPUTE, words_in),
        ("rows_final", Stage.COMPUTE, (design.rows).bit_length()),
        ("x_last", Stage.COMPUTE, tile),
        ("y_last", Stage.COMPUTE, tile),
        ("x_low", Stage.COMPUTE, coordinate),
        ("x_high", Stage.COMPUTE, coordinate),
        ("y_low", Stage.COMPUTE, coordinate),
        ("y_high", Stage.COMPUTE, coordinate),
        ("band_rows", Stage.COMPUTE, coordinate) if several_lanes else None,
        ("tile_rows", Stage.COMPUTE, rows_in_tile + 2) if several_lanes else None,
        ("first_channels", Stage.COMPUTE, 1) if design.psum_bytes else None,
        ("final_channels", Stage.COMPUTE, 1) if design.psum_bytes else None,
        ("output_entry", Stage.COMPUTE, entries_out),
        ("final_word_channels", Stage.COMPUTE, design.cols.bit_length()) if design.is_xnor else None,
        # store
        ("store_output", Stage.STORE, 1),
        ("output_address", Stage.STORE, EXTERNAL_ADDRESS_BITS),
        ("output_rows_last", Stage.STORE, rows_in_tile),
        ("output_bursts_last", Stage.STORE, tile),
        ("output_beats", Stage.STORE, LENGTH_BITS),
        ("output_row_length", Stage.STORE, LENGTH_BITS),
        ("store_band_last", Stage.STORE, tile) if several_lanes else None,
        ("store_entry", Stage.STORE, entries_out),
        ("next_row_first", Stage.STORE, coordinate) if design.chaining and several_lanes else None,
    ]
    result: dict[str, Field] = {}
    index = 0
    for row in table:
        if row is not None:
            name, stage, bits = row
            result[name] = Field(name, stage, bits, index)
            index += -(-bits // 32)
    return result


def has_columns(design: Design) -> bool:
    """Whether rows have column masks (groups packed side by side in a word)."""
    return not design.is_xnor and design.cols > 1


def slot_bits(design: Design) -> int:
    """Bits of a group's number within a word; ``cols`` itself stands for "no group"."""
    return design.cols.bit_length()


def entry_bits(design: Design, kind: str) -> int:
    """Address bits of a bank's entries."""
    return max(1, (design.bank_depth(kind) - 1).bit_length())


def address_bits(design: Design, kind: str) -> int:
    """Address bits of a bank's words (several words may share an entry)."""
    return entry_bits(design, kind) + (design.words_per_entry(kind) - 1).bit_length()


def encode(opcode: Opcode, *, address: int = 0, mode: Mode = Mode.DIRECT, level: int = 0, level_b: int = 0,
           field: int | None = None, immediate: int | None = None) -> int:
    """One instruction word; ``field`` is a field index."""
    destination = 0 if field is None else field + 1
    word = int(opcode) << 27 | destination << 20
    if immediate is not None:
        return word | immediate & (1 << IMMEDIATE_BITS) - 1
    return word | level_b << 14 | level << 11 | int(mode) << 9 | address


class ProgramBuilder:
    """Collects instructions and data, then lays them out: code first, variables, then tables at aligned addresses, long ones first.

    Tables have keys: equal keys share one table, which must have equal words. The length of a program depends on the calls made,
    never on the values in them.
    """

    def __init__(self, design: Design) -> None:
        self.fields = fields(design)
        self._code: list[tuple[Opcode, Mode, int, int, int | None, int | None, str | None]] = []
        self._variables: dict[str, int] = {}
        self._tables: dict[str, tuple[int, ...]] = {}
        self._entry: int | None = None

    def _emit(self, opcode: Opcode, *, mode: Mode = Mode.DIRECT, level: int = 0, level_b: int = 0, field: int | None = None,
              immediate: int | None = None, data: str | None = None) -> None:
        self._code.append((opcode, mode, level, level_b, field, immediate, data))

    def constant(self, name: str, value: int) -> None:
        """Set a field to a constant (all its 32-bit chunks)."""
        field = self.fields[name]
        for chunk in range(-(-field.bits // 32)):
            part = value >> (32 * chunk) & 0xFFFFFFFF
            if field.bits <= IMMEDIATE_BITS:  # the field cuts off what the sign extension adds
                self._emit(Opcode.IMMEDIATE, field=field.index, immediate=part)
            else:
                self.table(Opcode.LOAD, Mode.DIRECT, (part,), key=f"{name}[{chunk}]", field=field.index + chunk)

    def variable(self, name: str, initial: int) -> None:
        self._variables[name] = initial

    def entry(self) -> None:
        self._emit(Opcode.ENTRY)
        self._entry = len(self._code)

    def load(self, variable: str, *, field: int | None = None) -> None:
        self._emit(Opcode.LOAD, data=variable, field=field)

    def store(self, variable: str) -> None:
        self._emit(Opcode.STORE, data=variable)

    def step(self, level: int, reload: int) -> None:
        self.table(Opcode.STEP, Mode.DIRECT, (reload,), key=f"reload {level}", level=level)

    def table(self, opcode: Opcode, mode: Mode, words: tuple[int, ...], *, key: str, level: int = 0, level_b: int = 0,
              field: int | None = None) -> None:
        """An instruction whose operand is a word of a table. Not right after STEP if the mode is other than DIRECT: the operand's address
        leaves before that STEP has changed classes and level.
        """
        assert mode is Mode.DIRECT or self._code[-1][0] is not Opcode.STEP, f"table {key} would be read by the classes before the step"
        name = f"table {key}"
        assert self._tables.setdefault(name, words) == words, f"two tables are called {key}"
        self._emit(opcode, mode=mode, level=level, level_b=level_b, field=field, data=name)

    def end(self) -> None:
        self._emit(Opcode.END)

    @property
    def config_instructions(self) -> int:
        """Instructions before the tile routine, ENTRY included."""
        assert self._entry is not None
        return self._entry

    @property
    def tile_instructions(self) -> int:
        """Instructions of the tile routine, END included."""
        return len(self._code) - self.config_instructions

    def words(self) -> list[int]:
        """The whole program, header included. Raises InputError when it does not fit the program RAM."""
        position = 1 + len(self._code)
        where: dict[str, int] = {}
        data: dict[int, int] = {}
        for name, initial in self._variables.items():
            where[name] = position
            data[position] = initial & 0xFFFFFFFF
            position += 1
        for name, table in sorted(self._tables.items(), key=lambda item: -len(item[1])):
            align = len(table)
            position = -(-position // align) * align
            where[name] = position
            for offset, word in enumerate(table):
                data[position + offset] = word & 0xFFFFFFFF
            position += align
        if position > PROGRAM_DEPTH:
            raise InputError(f"the layer's program of {position} words exceeds the program RAM", allowed=f"{PROGRAM_DEPTH} words")
        words = [HEADER]
        for opcode, mode, level, level_b, field, immediate, key in self._code:
            address = where[key] if key is not None else 0
            words.append(encode(opcode, address=address, mode=mode, level=level, level_b=level_b, field=field, immediate=immediate))
        return words + [data.get(at, 0) for at in range(len(words), position)]
