"""A design point: one frozen, validated object from which hardware, golden model, resources and cycles are derived."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any

from boards.primitives import Family
from hdl.choices import (
    BUS_BITS,
    ELEMENT_BITS,
    Accumulate,
    Dataflow,
    Multiplier,
    OutputMultiplier,
)
from hdl.choices import parse_array as parse_array  # part of what this module offers
from hdl.choices import parse_precision as parse_precision
from hdl.errors import InputError, nearest
from hdl.family import DISTRIBUTED_WIDTHS, DSP_RULES, dsp_blocks, dsp_operand_bits
from hdl.multiplier_checks import check_multiplier
from hdl.multiply import chunk_bits, dsp_chunks
from hdl.options import choice_option, enum_option, integer_option
from hdl.ram import MIN_DISTRIBUTED_DEPTH, RamShape, ram_shape

MULTIPLIER_BITS = 17  # requantisation multiplier, unsigned
SHIFT_BITS = 6
SHIFT_MAX = 47
MAX_ACCUMULATOR_BITS = 48  # the DSP48A1's P register
MAX_ARRAY = 64  # rows, lanes
MAX_COLS = 512
MAX_MULTIPLIER_COLS = 128  # the columns' group numbers are fields of the program
MAX_CHAINING_COLS = 127  # as above, and chaining has fields too: a program names 127 parts of fields
MAX_BANK_DEPTH = 1 << 16
MAX_SIGNAL_BITS = 4096
MAX_DISTRIBUTED_DEPTH = 512


@dataclass(frozen=True, kw_only=True)
class Design:
    """An accelerator: array, precision, banks and bus.

    Parameters
    ----------
    rows: output channels in parallel, 1..64.
    cols: input channels in parallel (dot-product width), 1..128 (w1a1: 1..512).
    lanes: bands of output rows in parallel, 1..64.
    weight_bits, activation_bits: 1, 2, 4, 8 or 16; both 1 means XNOR-popcount.
    accumulator_bits: signed accumulator, 8..48; ``Layer`` checks say when it could overflow.
    multiplier: array products in ``dsp``, one a block; ``dsp_pair``, those of two neighbouring rows in one block (``rows`` even, and
        :attr:`pair_operand_bits` no more than the block takes); or ``lut``. XNOR has none and takes ``lut``. Products that synthesis
        would leave in look-up tables are refused in DSP blocks.
    accumulate: ``tree`` or ``per_column`` (not for XNOR).
    drains: parallel result paths; either a divisor of ``lanes``, or ``lanes`` times a power of two that divides
        ``rows`` and ``cols`` and whose elements fit a beat.
    output_multiplier: multiplier of the output stage (``dsp`` needs blocks of 18 x 18 bits: not iCE40); unused (and ``serial``) with
        1-bit activations, which use thresholds.
    input_bytes, weight_bytes, output_bytes, psum_bytes: total bank capacity of a kind (all lanes or rows together);
        ``psum_bytes`` 0 leaves the partial-sum RAM out, and then a layer's channels cannot be tiled.
    distributed_depth: banks of data of at most this many entries are distributed RAM instead of block RAM: 0 for none, or 16..512
        (not iCE40, which has none).
    bus_bits: width of a beat of the external memory channel: 16, 32, 64, 128 or 256.
    clock_mhz: core clock, 1..1000.
    counters: build the performance counters.
    chaining: build what keeps a tensor on chip from one layer to the next: programs that follow each other in one run, and a way
        from the output banks to the input banks.
    family: of the device, which decides the widths of DSP blocks and the shapes of RAMs: xc6s, xc7, xcup, ecp5, ice40, gowin.
    dataflow: ``output_stationary``.
    """

    rows: int
    cols: int
    lanes: int = 1
    weight_bits: int = 8
    activation_bits: int = 8
    accumulator_bits: int = 32
    multiplier: Multiplier = Multiplier.DSP
    accumulate: Accumulate = Accumulate.TREE
    drains: int = 1
    output_multiplier: OutputMultiplier = OutputMultiplier.SERIAL
    input_bytes: int = 16384
    weight_bytes: int = 16384
    output_bytes: int = 2048
    psum_bytes: int = 0
    distributed_depth: int = 0
    bus_bits: int = 16
    clock_mhz: float = 100.0
    counters: bool = True
    chaining: bool = False
    family: Family = Family.SPARTAN6
    dataflow: Dataflow = Dataflow.OUTPUT_STATIONARY

    def __post_init__(self) -> None:
        for name, enum in (("multiplier", Multiplier), ("accumulate", Accumulate), ("dataflow", Dataflow),
                           ("output_multiplier", OutputMultiplier), ("family", Family)):
            object.__setattr__(self, name, enum_option(name, enum, getattr(self, name)))
        for name, low, high in (("rows", 1, MAX_ARRAY), ("cols", 1, MAX_COLS), ("lanes", 1, MAX_ARRAY), ("drains", 1, 4096),
                                ("accumulator_bits", 8, MAX_ACCUMULATOR_BITS), ("input_bytes", 1, 1 << 26),
                                ("weight_bytes", 1, 1 << 26), ("output_bytes", 1, 1 << 26), ("psum_bytes", 0, 1 << 26),
                                ("distributed_depth", 0, MAX_DISTRIBUTED_DEPTH)):
            integer_option(name, getattr(self, name), low, high)
        for name, choices in (("weight_bits", ELEMENT_BITS), ("activation_bits", ELEMENT_BITS), ("bus_bits", BUS_BITS)):
            choice_option(name, getattr(self, name), choices)
        for name in ("counters", "chaining"):
            if not isinstance(getattr(self, name), bool):
                raise InputError("must be true or false", where=f"design.{name}", value=getattr(self, name))
        clock = self.clock_mhz
        if isinstance(clock, bool) or not isinstance(clock, int | float) or not 1 <= clock <= 1000:
            raise InputError("clock out of range", where="design.clock_mhz", value=clock, allowed="1 to 1000 (MHz)")
        object.__setattr__(self, "clock_mhz", float(clock))
        integer_option("cols", self.cols, 1, MAX_COLS if self.is_xnor else MAX_MULTIPLIER_COLS)
        if self.chaining and not self.is_xnor:
            integer_option("cols", self.cols, 1, MAX_CHAINING_COLS)
        check_multiplier(self)
        self._check_accumulator()
        self._check_distributed()
        self._check_drains()
        self._check_signals()
        for kind in ("input", "weight", "output"):
            self._check_depth(kind)
        if self.psum_bytes:
            self._check_depth("psum")

    # -- what the hardware is made of ---------------------------------------------------------------------------------

    @property
    def precision(self) -> str:
        """``"w8a8"``: weight and activation bits."""
        return f"w{self.weight_bits}a{self.activation_bits}"

    @property
    def array(self) -> str:
        """``"4x4x1"``: rows, columns, lanes."""
        return f"{self.rows}x{self.cols}x{self.lanes}"

    @property
    def macs_per_cycle(self) -> int:
        return self.rows * self.cols * self.lanes

    @property
    def is_xnor(self) -> bool:
        """Both operands are 1 bit: XNOR-popcount instead of multipliers."""
        return self.weight_bits == 1 and self.activation_bits == 1

    @property
    def has_threshold_output(self) -> bool:
        """1-bit outputs compare the accumulator with a threshold instead of requantising."""
        return self.activation_bits == 1

    @property
    def weight_operand_bits(self) -> int:
        """Signed multiplier operand: a 1-bit weight is +1 or -1, which takes 2 bits."""
        return max(2, self.weight_bits)

    @property
    def activation_operand_bits(self) -> int:
        """Signed multiplier operand after the zero point is subtracted; a 1-bit activation is +1 or -1."""
        return self.activation_bits + 1

    @property
    def product_bits(self) -> int:
        return self.weight_operand_bits + self.activation_operand_bits

    @property
    def term_bits(self) -> int:
        """Bits of a product as it is summed. An activation less its zero point is no less than ``1 - 2**activation_bits``, so that the
        product fits in one bit less than any two operands' would."""
        return self.weight_bits + self.activation_bits

    @property
    def pair_operand_bits(self) -> int:
        """Two rows' weights as one operand, ``term_bits`` apart: with that their products do not overlap."""
        return self.term_bits + self.weight_bits + 1

    @property
    def array_dsps(self) -> int:
        """DSP blocks of the array, exactly those of synthesis."""
        if self.multiplier is Multiplier.LUT:
            return 0
        if self.multiplier is Multiplier.DSP_PAIR:
            # Of a block's product the two rows' terms are used; synthesis cuts it to them before it asks whether it is wide enough.
            return self.macs_per_cycle // 2 if 2 * self.term_bits >= DSP_RULES[self.family][-1].min_product else 0
        return self.macs_per_cycle * dsp_blocks(self.family, self.weight_operand_bits, self.activation_operand_bits)

    @property
    def output_dsps(self) -> int:
        """DSP blocks of one drain's output stage: its product of an accumulator and 18 bits, if it is made of them."""
        in_dsps = self.output_multiplier is OutputMultiplier.DSP and not self.has_threshold_output
        return dsp_chunks(self.accumulator_bits, self.output_chunk_bits) if in_dsps else 0

    @property
    def output_chunk_bits(self) -> int:
        """Bits of an accumulator that one DSP block of the output stage multiplies."""
        return chunk_bits(dsp_operand_bits(self.family)[0])

    @property
    def dsps(self) -> int:
        """DSP blocks of the whole design."""
        return self.array_dsps + self.drains * self.output_dsps

    # -- drains -------------------------------------------------------------------------------------------------------

    @property
    def drains_per_lane(self) -> int:
        """Results of one lane that leave in the same step (1 when a drain serves one lane or several)."""
        return max(1, self.drains // self.lanes)

    @property
    def lanes_per_drain(self) -> int:
        return max(1, self.lanes // self.drains)

    @property
    def drain_steps(self) -> int:
        """Results that each drain moves for one pixel group: rows*lanes/drains."""
        return self.rows * self.lanes // self.drains

    # -- words, beats and banks ---------------------------------------------------------------------------------------

    def word_bits(self, kind: str) -> int:
        """Bits of one word (``cols`` elements) of ``"input"``, ``"weight"`` or ``"output"`` data."""
        return self.cols * (self.weight_bits if kind == "weight" else self.activation_bits)

    def word_slot_bits(self, kind: str) -> int:
        """A word as it travels: padded to whole beats, or to a power-of-two fraction of one."""
        bits = self.word_bits(kind)
        if bits >= self.bus_bits:
            return -(-bits // self.bus_bits) * self.bus_bits
        return 1 << (bits - 1).bit_length()

    def words_per_entry(self, kind: str) -> int:
        """Words in one bank entry: 1, or the words of a beat when several share it."""
        return max(1, self.bus_bits // self.word_slot_bits(kind))

    def beats_per_entry(self, kind: str) -> int:
        """Beats in one bank entry: the beats of a word, or 1."""
        return max(1, self.word_slot_bits(kind) // self.bus_bits)

    @property
    def parameter_bits(self) -> int:
        """Output-stage parameters of one channel: bias, multiplier, shift; or threshold and flip."""
        if self.has_threshold_output:
            return self.accumulator_bits + 1 + 1
        return self.accumulator_bits + MULTIPLIER_BITS + SHIFT_BITS

    @property
    def parameter_beats(self) -> int:
        return -(-self.parameter_bits // self.bus_bits)

    def bank_count(self, kind: str) -> int:
        """Banks of a kind: one a row (weight), a lane (input, output), a drain (psum), a drain of a lane (parameter)."""
        return {"weight": self.rows, "input": self.lanes, "output": self.lanes, "psum": self.drains,
                "parameter": self.drains_per_lane, "program": 1}[kind]

    def bank_width_bits(self, kind: str) -> int:
        """Stored bits of one entry (the beat padding of a long word is not stored)."""
        if kind in ("input", "weight"):
            slots = self.words_per_entry(kind)
            return self.word_bits(kind) if slots == 1 else self.bus_bits
        return {"output": self.bus_bits, "psum": self.accumulator_bits, "parameter": self.parameter_bits,
                "program": PROGRAM_WORD_BITS}[kind]

    def bank_shape(self, kind: str) -> RamShape:
        """The RAM of one bank: at least the capacity asked for, in whole block RAMs, or distributed where it is shallow."""
        distributed = 0 if kind in FIXED_DEPTHS else self.distributed_depth
        return ram_shape(self.bank_width_bits(kind), self._entries_asked(kind), family=self.family, distributed_depth=distributed)

    def bank_depth(self, kind: str) -> int:
        """Entries of each bank of a kind: what its RAM holds, a power of two."""
        return self.bank_shape(kind).depth

    @property
    def bank_kinds(self) -> tuple[str, ...]:
        """Every kind of RAM that the design has."""
        return ("input", "weight", "output", "parameter", "program", *(("psum",) if self.psum_bytes else ()))

    def bank_rams(self, kind: str) -> int:
        """Block RAMs of all banks of a kind, in units of :func:`hdl.family.block_ram`."""
        return self.bank_count(kind) * self.bank_shape(kind).blocks

    @property
    def block_rams(self) -> int:
        """Block RAMs of the whole design, in units of :func:`hdl.family.block_ram` (18 Kb; iCE40: 4 Kb), exactly those of synthesis."""
        return sum(self.bank_rams(kind) for kind in self.bank_kinds)

    @property
    def distributed_rams(self) -> int:
        """Cells of distributed RAM (RAM32M, RAM64M, TRELLIS_DPR16X4...) of the whole design, exactly those of synthesis."""
        return sum(self.bank_count(kind) * self.bank_shape(kind).cells for kind in self.bank_kinds)

    def _entries_asked(self, kind: str) -> int:
        if kind in FIXED_DEPTHS:
            return FIXED_DEPTHS[kind]
        total = {"input": self.input_bytes, "weight": self.weight_bytes, "output": self.output_bytes,
                 "psum": self.psum_bytes}[kind]
        return total * 8 // (self.bank_count(kind) * self.bank_width_bits(kind))

    # -- construction -------------------------------------------------------------------------------------------------

    def with_(self, **changes: Any) -> Design:
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the YAML file holds them."""
        return {key: (str(value) if isinstance(value, StrEnum) else value) for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Any, *, where: str = "design") -> Design:
        """Inverse of :meth:`to_dict`; refuses unknown and missing keys by name."""
        if not isinstance(data, dict):
            raise InputError("must be a mapping of design options", where=where, value=data)
        known = [field.name for field in fields(cls)]
        for key in data:
            if key not in known:
                near = nearest(key, known)
                raise InputError("unknown key", where=where, value=key, allowed=", ".join(known),
                                 suggestion=f"nearest: {near}" if near else None)
        for key in ("rows", "cols"):
            if key not in data:
                raise InputError(f"missing key {key!r}", where=where, allowed="a whole number from 1")
        try:
            return cls(**data)
        except InputError as error:
            location = (error.where or "").replace("design", where, 1)
            raise InputError(error.what, where=location or where, allowed=error.allowed, suggestion=error.suggestion,
                             **({"value": error.value} if error.has_value else {})) from None

    # -- checks -------------------------------------------------------------------------------------------------------

    def _check_accumulator(self) -> None:
        least = self.product_bits if not self.is_xnor else 2
        if self.accumulator_bits < least + 1:
            raise InputError(f"accumulator narrower than one product of {least} bits and a sign", where="design.accumulator_bits",
                             value=self.accumulator_bits, allowed=f"{least + 1} to {MAX_ACCUMULATOR_BITS}")

    @staticmethod
    def fits_dsp(family: Family, weight_bits: int, activation_bits: int) -> bool:
        """Whether synthesis puts products of this precision in DSP blocks."""
        if weight_bits == activation_bits == 1:
            return False
        return dsp_blocks(family, max(2, weight_bits), activation_bits + 1) > 0

    def _check_distributed(self) -> None:
        if not self.distributed_depth:
            return
        if not DISTRIBUTED_WIDTHS[self.family]:
            raise InputError(f"{self.family} has no distributed RAM", where="design.distributed_depth", value=self.distributed_depth,
                             allowed="0")
        if self.distributed_depth < MIN_DISTRIBUTED_DEPTH:
            raise InputError("out of range", where="design.distributed_depth", value=self.distributed_depth,
                             allowed=f"0, or {MIN_DISTRIBUTED_DEPTH} to {MAX_DISTRIBUTED_DEPTH}")

    def legal_drains(self) -> list[int]:
        """Every legal value of ``drains`` for this array."""
        shared = [self.lanes // n for n in range(1, self.lanes + 1) if self.lanes % n == 0]
        several = [self.lanes * p for p in (2, 4, 8, 16, 32, 64)
                   if self.rows % p == 0 and self.cols % p == 0 and p * self.activation_bits <= self.bus_bits]
        return sorted({*shared, *several})

    def _check_drains(self) -> None:
        legal = self.legal_drains()
        if self.drains not in legal:
            closest = min(legal, key=lambda n: abs(n - self.drains))
            raise InputError(f"a {self.array} array cannot have this many drains", where="design.drains", value=self.drains,
                             allowed=", ".join(map(str, legal)), suggestion=f"nearest: {closest}")

    def _check_signals(self) -> None:
        """Synthesis tools choke on very wide signals."""
        for what, bits, where in (("lanes' beats", self.lanes * self.bus_bits, "bus_bits"),
                                  ("drains' results", self.drains * self.accumulator_bits, "drains")):
            if bits > MAX_SIGNAL_BITS:
                raise InputError(f"the {what} are {bits} bits side by side", where=f"design.{where}", value=getattr(self, where),
                                 allowed=f"{MAX_SIGNAL_BITS} bits in all")

    def _check_depth(self, kind: str) -> None:
        entries, count, width = self._entries_asked(kind), self.bank_count(kind), self.bank_width_bits(kind)
        value = getattr(self, f"{kind}_bytes")
        if entries < 1:
            least = -(-count * width // 8)
            raise InputError(f"{count} bank(s) of {width} bits do not get an entry each", where=f"design.{kind}_bytes",
                             value=value, allowed=f"at least {least} bytes")
        if self.bank_depth(kind) > MAX_BANK_DEPTH:
            most = MAX_BANK_DEPTH * count * width // 8
            raise InputError(f"banks of over {MAX_BANK_DEPTH} entries", where=f"design.{kind}_bytes", value=value,
                             allowed=f"at most {most} bytes")


PROGRAM_WORD_BITS = 32
PROGRAM_DEPTH = 512
FIXED_DEPTHS = {"program": PROGRAM_DEPTH, "parameter": 512}
