"""What one more DSP block, KiB of a bank or MB/s would buy: the layer is mapped again on the changed design, exactly.

An array grows by whole rows, columns or lanes and a bank by whole RAMs, so one more block or KiB alone may buy nothing; the steps that
do are listed with what they take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from boards.errors import InputError
from boards.schema import Board
from dse.choose import bank_bytes, with_smallest_banks
from dse.estimate.resources import overshoot, usable
from dse.explain.derivation import Derivation
from dse.schedule.search import Choice, best_tiling
from hdl.design import Design, Multiplier, OutputMultiplier
from hdl.mapping import ceil_div
from sim.memory import MemoryTiming

BANKS = ("input", "weight", "output", "psum")
KIB = 1024
UNITS = {"dsps": "DSP blocks", "block_rams": "block RAMs"}


@dataclass(frozen=True)
class Change:
    """A changed design or memory. ``name``: of its steps; ``what``: for the reader; ``refused``: why there is no such design."""

    name: str
    what: str
    design: Design | None
    timing: MemoryTiming
    refused: str = ""


def explain_gains(d: Derivation, choice: Choice, board: Board, timing: MemoryTiming) -> None:
    """Cycles and bytes that each change saves, and what it takes in DSP blocks and block RAMs."""
    design, layer = choice.plan.design, choice.plan.layer
    have = usable(board)
    d.section("What more would buy (mapped again: fewest cycles; within 1 % of that, fewest bytes)")
    for what, used in _blocks(design).items():
        d.given(what, used, UNITS[what], "of the design, exactly")
        d.given(f"usable_{what}", have[what], UNITS[what], "of the board")
    d.given("saved_by_dsp", 0, "cycles", "1 DSP block more alone: an array grows by whole rows, columns or lanes, and the next ones follow")
    for change in [*_arrays(design, timing), *_banks(design, timing), *_memories(design, board, timing)]:
        refused, found = change.refused, None
        if change.design is not None:
            try:
                found = best_tiling(change.design, layer, change.timing)
            except InputError as error:
                refused = error.what
        if found is None:
            d.given(f"designs_with_{change.name}", 0, "designs", f"{change.what}: {refused}")
        else:
            _explain_change(d, change, found, design, board)


def _explain_change(d: Derivation, change: Change, found: Choice, design: Design, board: Board) -> None:
    new, name = found.plan.design, change.name
    over = overshoot(new, board)
    fits = "" if not over else "; exceeds the board: " + ", ".join(
        f"{what.replace('_', ' ')} {need} of {have}" for what, (need, have) in over.items())
    d.given(f"cycles_with_{name}", found.prediction.cycles, "cycles", change.what + fits)
    saved = d.let(f"saved_by_{name}", f"cycles - cycles_with_{name}", "cycles")
    if found.bytes != d["bytes_moved"]:
        d.given(f"bytes_with_{name}", found.bytes, "bytes", "moved in all")
        d.let(f"bytes_saved_by_{name}", f"bytes_moved - bytes_with_{name}", "bytes")
    for what, used in _blocks(new).items():
        if used != d[what]:
            d.given(f"{what}_with_{name}", used, UNITS[what], "exactly")
            if saved and used > d[what]:
                d.let(f"saved_per_{what[:-1]}_by_{name}", f"saved_by_{name}/({what}_with_{name} - {what})", f"cycles/{UNITS[what][:-1]}")


def _blocks(design: Design) -> dict[str, int]:
    return {"dsps": design.dsps, "block_rams": design.block_rams}


# -- DSP blocks -------------------------------------------------------------------------------------------------------


def _arrays(design: Design, timing: MemoryTiming) -> Iterator[Change]:
    """The next larger arrays, with banks as deep; and DSP blocks in the output stage."""
    step = 2 if design.multiplier is Multiplier.DSP_PAIR else 1
    for name, more in (("rows", step), ("cols", 1), ("lanes", 1)):
        size = getattr(design, name) + more
        what = f"{size} {name} in place of {getattr(design, name)}, with banks as deep"
        try:
            yield Change(name, what, _as_deep(design, **{name: size}), timing)
        except InputError as error:
            yield Change(name, what, None, timing, error.what)
    if design.output_multiplier is not OutputMultiplier.DSP and not design.has_threshold_output:
        what = "the output stage in DSP blocks: a result a cycle"
        try:
            yield Change("output_dsps", what, design.with_(output_multiplier=OutputMultiplier.DSP), timing)
        except InputError as error:
            yield Change("output_dsps", what, None, timing, error.what)


def _as_deep(design: Design, **changes: int) -> Design:
    """The changed design with banks of as many entries. Drains: as many, or the next number that the array can have."""
    kinds = [kind for kind in BANKS if kind in design.bank_kinds]
    sizes = [f"{kind}_bytes" for kind in BANKS[:3]]
    options = {name: value for name, value in {**design.to_dict(), **changes}.items() if name not in sizes}
    legal = with_smallest_banks({**options, "drains": options["lanes"]}).legal_drains()
    drains = min((count for count in legal if count >= design.drains), default=legal[-1])
    shallow = with_smallest_banks({**options, "drains": drains})
    return shallow.with_(**{f"{kind}_bytes": bank_bytes(shallow, kind, design.bank_depth(kind)) for kind in kinds})


# -- banks ------------------------------------------------------------------------------------------------------------


def _banks(design: Design, timing: MemoryTiming) -> Iterator[Change]:
    """A KiB more of each kind of bank, and the next depth where that does not make the RAM deeper."""
    for kind in BANKS:
        asked = getattr(design, f"{kind}_bytes")
        depth = design.bank_depth(kind) if kind in design.bank_kinds else 0
        held = depth * design.bank_width_bits(kind) * design.bank_count(kind)
        more = f"1 KiB more {kind}, all its banks together" if asked else "a psum RAM of 1 KiB"
        yield _bank(design, kind, asked + KIB, timing, f"{kind}_kib", more)
        if asked and held >= (asked + KIB) * 8:
            yield _bank(design, kind, ceil_div(2 * held, 8), timing, f"{kind}_depth",
                        f"{2 * held / 8 / KIB:g} KiB {kind}: the next depth; the RAM of {held / 8 / KIB:g} KiB holds one KiB more already")


def _bank(design: Design, kind: str, size: int, timing: MemoryTiming, name: str, what: str) -> Change:
    try:
        return Change(name, what, design.with_(**{f"{kind}_bytes": size}), timing)
    except InputError as error:
        return Change(name, what, None, timing, error.what)


# -- external memory --------------------------------------------------------------------------------------------------


def _memories(design: Design, board: Board, timing: MemoryTiming) -> Iterator[Change]:
    """1 MB/s more from the memory, and twice as much; the bus moves at most a beat a cycle."""
    offered = board.offered_bytes_per_cycle(design.clock_mhz)
    one = 1 / Fraction(str(design.clock_mhz))
    for name, bytes_per_cycle, what in (("mb_s", offered + one, "1 MB/s more from the memory"),
                                        ("twice_mb_s", 2 * offered, "twice the MB/s from the memory")):
        beats = min(Fraction(1), bytes_per_cycle / (design.bus_bits // 8))
        if beats == timing.beats_per_cycle:
            what += ": the bus takes no more, it moves a beat a cycle already"
        yield Change(name, what, design, MemoryTiming.from_fraction(timing.latency_cycles, beats))
