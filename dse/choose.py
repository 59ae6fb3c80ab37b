"""Chooses what the user left open: the design that runs a layer fastest on a board."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.schema import Board
from dse.estimate.resources import check_fits, overshoot, usable
from dse.schedule.explore import CYCLE_TOLERANCE, LayerSpace
from dse.schedule.search import Choice, bank_depths, best_tiling, does_not_fit
from hdl.compatibility import accumulator_bits_needed
from hdl.design import MAX_ACCUMULATOR_BITS, MAX_ARRAY, Design, Multiplier, OutputMultiplier
from hdl.drain import drain_cycles
from hdl.errors import InputError
from hdl.family import block_ram
from hdl.layer import Layer
from hdl.mapping import Format, Grouping, ceil_div
from hdl.ram import block_ram_depths, least_depth
from sim.memory import MemoryTiming

ARRAYS_COMPARED = 4
"""Arrays whose bound is best, compared by exact prediction."""
ENOUGH, WORTH_A_LOOK = 60, 1.5
"""Designs that fit, and how far their array bounds may lie above the best, before the list of candidates is closed."""
COLUMNS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256)
ROWS = tuple(range(1, 17)) + tuple(range(18, MAX_ARRAY + 1, 2))
LANES = (1, 2, 3, 4, 6, 8)
DEEP = (4096, 8192, 16384, 32768, 65536)
"""Depths of banks that are worth trying beyond those of one block RAM."""


@dataclass(frozen=True)
class Candidate:
    """A design with the smallest banks, and the fewest cycles that its array, drains and the memory could need."""

    bound_cycles: float
    design: Design


@dataclass(frozen=True)
class Option:
    """A design with its best mapping's figures."""

    design: Design
    cycles: int
    bytes: int


def board_timing(board: Board, design: Design) -> MemoryTiming:
    """The board's external memory as the design's bus and clock see it.

    Raises InputError for a board without one, and where its latency is shorter than the design's lanes take to settle.
    """
    beats = board.offered_beats_per_cycle(design.bus_bits, design.clock_mhz)
    assert board.memory is not None
    latency = board.memory.latency_cycles.value
    if latency < design.lanes:
        raise InputError(f"the lanes' row limits settle one lane a cycle, during the latency of {board.name}'s memory",
                         where="design.lanes", value=design.lanes, allowed=f"at most {latency}")
    return MemoryTiming.from_fraction(latency, beats)


def choose_design(board: Board, layer: Layer, weight_bits: int, activation_bits: int, *, fixed: dict[str, Any] | None = None) -> Choice:
    """The fastest design for ``layer`` on ``board`` with its mapping; ``fixed`` holds the ``Design`` options the user gave.

    Compares the arrays with the lowest bounds, each with several splits of the block RAM, by exact prediction.
    Raises InputError when nothing fits: the nearest miss, its resource and by how much.
    """
    fixed = {"clock_mhz": board.clock_mhz.value, **(fixed or {}), "family": board.device.family}
    fixed.setdefault("bus_bits", board.default_bus_bits(fixed["clock_mhz"]))
    if "accumulator_bits" not in fixed:
        needed = accumulator_bits_needed(layer, weight_bits, activation_bits)
        if needed > MAX_ACCUMULATOR_BITS:
            raise InputError(f"the layer's sums need {needed} bits", where="layer", value=str(layer),
                             allowed=f"accumulators of up to {MAX_ACCUMULATOR_BITS} bits", suggestion="use fewer bits or channels")
        fixed["accumulator_bits"] = needed
    fixed |= {"weight_bits": weight_bits, "activation_bits": activation_bits}
    if not usable(board)["dsps"]:
        fixed.setdefault("multiplier", Multiplier.LUT)
    candidates = sorted(_candidates(board, layer, fixed), key=lambda c: (c.bound_cycles, _shape_order(c.design)))
    if not candidates:
        raise _nothing_fits(board, layer, fixed)
    found: list[Option] = []
    reason: InputError | None = None
    seen: set[tuple[int, int, int, int]] = set()
    for candidate in candidates:
        shape = (candidate.design.rows, candidate.design.cols, candidate.design.lanes, candidate.design.drains)
        if shape in seen:
            continue
        if len(seen) >= ARRAYS_COMPARED or found and candidate.bound_cycles > min(option.cycles for option in found):
            break
        try:
            found.append(_with_banks(board, layer, candidate, fixed))
        except InputError as error:
            reason = error
            continue
        seen.add(shape)
    if not found:
        assert reason is not None
        raise reason
    best = min(_near(found), key=lambda option: (_shape_order(option.design), option.cycles, option.bytes, option.design.block_rams))
    return best_tiling(best.design, layer, board_timing(board, best.design))


def _near(options: list[Option]) -> list[Option]:
    """Those that take about as few cycles as any."""
    fewest = min(option.cycles for option in options)
    return [option for option in options if option.cycles <= fewest * (1 + CYCLE_TOLERANCE)]


def _shape_order(design: Design) -> tuple[int, int, int, int]:
    """Among equals: fewer drains, fewer lanes, the squarer array."""
    return design.drains, design.output_dsps, design.lanes, abs(design.rows - design.cols)


# -- arrays -----------------------------------------------------------------------------------------------------------


def _candidates(board: Board, layer: Layer, fixed: dict[str, Any]) -> Iterator[Candidate]:
    """Designs that fit, from the lowest array bound up, until there are ENOUGH with the bound of the best."""
    least: float | None = None
    found = 0
    for cycles, rows, cols, lanes in sorted(_arrays(board, layer, fixed)):
        if least is not None and (cycles > least * WORTH_A_LOOK or found >= ENOUGH):
            return
        for design in _styles({**fixed, "rows": rows, "cols": cols, "lanes": lanes}):
            if not overshoot(design, board):
                candidate = Candidate(_bound(board, layer, design), design)
                least = candidate.bound_cycles if least is None else min(least, candidate.bound_cycles)
                found += 1
                yield candidate


def _arrays(board: Board, layer: Layer, fixed: dict[str, Any]) -> Iterator[tuple[int, int, int, int]]:
    """(compute cycles, rows, cols, lanes) of the shapes worth looking at: none wider than the layer can use or the board could hold."""
    most_cols = max(layer.C // layer.G, min(layer.C, 16))
    room, port = usable(board), block_ram(board.device.family).port_bits
    for rows in (fixed["rows"],) if "rows" in fixed else ROWS:
        for cols in (fixed["cols"],) if "cols" in fixed else COLUMNS:
            for lanes in (fixed["lanes"],) if "lanes" in fixed else LANES:
                given = {"rows", "cols", "lanes"} <= fixed.keys()
                wasteful = rows > layer.K or cols > most_cols or lanes > layer.OY
                # What a bank reads in a cycle takes so many block RAMs.
                rams = rows * ceil_div(cols * fixed["weight_bits"], port) + lanes * ceil_div(cols * fixed["activation_bits"], port)
                fits = rams <= room["block_rams"] and rows * cols * lanes <= max(room["dsps"], room["luts"])
                if given or rows * cols * lanes == 1 or fits and not wasteful:
                    group_inputs, group_outputs = layer.C // layer.G, layer.K // layer.G
                    packed = max(1, min(layer.G, cols // group_inputs))
                    blocks = ceil_div(layer.G, packed) * ceil_div(packed * group_outputs, rows)
                    vectors = ceil_div(group_inputs, cols) * layer.FY * layer.FX
                    yield layer.B * layer.OX * ceil_div(layer.OY, lanes) * blocks * vectors, rows, cols, lanes


def _styles(options: dict[str, Any]) -> Iterator[Design]:
    """The legal multiplier styles and drains of an array, with the smallest banks."""
    multipliers: tuple[Multiplier, ...]
    if "multiplier" in options:
        multipliers = (options["multiplier"],)
    else:
        # DSP counts are exact and LUT counts estimates, so arrays of LUT multipliers are only chosen where DSPs cannot serve.
        in_dsps = Design.fits_dsp(options["family"], options["weight_bits"], options["activation_bits"])
        multipliers = (Multiplier.DSP, Multiplier.DSP_PAIR) if in_dsps else (Multiplier.LUT,)
    outputs = (options["output_multiplier"],) if "output_multiplier" in options else (OutputMultiplier.SERIAL, OutputMultiplier.DSP)
    for multiplier in multipliers:
        for output in outputs:
            try:
                plain = with_smallest_banks({**options, "multiplier": multiplier, "output_multiplier": output, "drains": 1})
                legal = plain.legal_drains()
            except InputError:
                try:
                    legal = [options["drains"]] if "drains" in options else [options["lanes"]]
                    plain = with_smallest_banks({**options, "multiplier": multiplier, "output_multiplier": output, "drains": legal[0]})
                    legal = plain.legal_drains()
                except InputError:
                    continue
            for drains in (options["drains"],) if "drains" in options else legal[:4]:
                try:
                    yield with_smallest_banks({**options, "multiplier": multiplier, "output_multiplier": output, "drains": drains})
                except InputError:
                    continue


def with_smallest_banks(options: dict[str, Any]) -> Design:
    """The design with one block RAM deep banks, where the user gave none."""
    rows, cols, lanes, bus = options["rows"], options["cols"], options["lanes"], options["bus_bits"]
    # At least as many entries each as a block RAM has; then exactly so many, once the design knows the width of an entry.
    generous = {"input_bytes": lanes * max(cols * options["activation_bits"], bus) * 64,
                "weight_bytes": rows * max(cols * options["weight_bits"], bus) * 64, "output_bytes": lanes * bus * 64}
    banks = {name: size for name, size in generous.items() if name not in options}
    design = Design(**{"psum_bytes": 0, **banks, **options})
    depth = least_depth(design.family)
    return design.with_(**{name: bank_bytes(design, name.removesuffix("_bytes"), depth) for name in banks})


def bank_bytes(design: Design, kind: str, depth: int) -> int:
    """Total bytes of a kind's banks of ``depth`` entries."""
    return ceil_div(depth * design.bank_width_bits(kind) * design.bank_count(kind), 8)


def _bound(board: Board, layer: Layer, design: Design) -> float:
    """Fewest cycles by array, drains and compulsory traffic."""
    group = Grouping.of(design, layer)
    vectors = group.words * layer.FY * layer.FX
    groups = layer.B * layer.OX * ceil_div(layer.OY, design.lanes) * group.count * group.passes * group.blocks
    compute = groups * max(vectors, drain_cycles(design))
    beats = (layer.B * layer.IY * layer.IX * Format.of(design, "input").beats(group.count * group.words)
             + layer.weights * design.weight_bits / design.bus_bits
             + layer.outputs * design.activation_bits / design.bus_bits)
    return max(compute, beats / float(board.offered_beats_per_cycle(design.bus_bits, design.clock_mhz)))


# -- banks ------------------------------------------------------------------------------------------------------------


def _with_banks(board: Board, layer: Layer, candidate: Candidate, fixed: dict[str, Any]) -> Option:
    """The best split of the block RAM for an array. Raises InputError when no tile fits any."""
    designs = list(_bank_options(board, layer, candidate.design, fixed))
    if not designs:
        raise _nothing_fits(board, layer, fixed)
    timing = board_timing(board, candidate.design)
    best = LayerSpace(candidate.design, layer).best(np.stack([bank_depths(design) for design in designs]), timing)
    if not best.feasible.any():
        raise does_not_fit(designs[-1], layer, best.reasons[len(designs) - 1])
    beat_bytes = candidate.design.bus_bits // 8
    options = [Option(designs[at], int(best.cycles[at]), int(best.beats_read[at] + best.beats_written[at]) * beat_bytes)
               for at in best.feasible.nonzero()[0]]
    return min(_near(options), key=lambda option: (option.bytes, option.cycles, option.design.block_rams))


def _bank_options(board: Board, layer: Layer, design: Design, fixed: dict[str, Any]) -> Iterator[Design]:
    """For each weight bank depth the deepest input bank that fits, with and without a psum RAM; nothing deeper than of use."""
    group = Grouping.of(design, layer)
    input_form, weight_form = Format.of(design, "input"), Format.of(design, "weight")
    whole_input = layer.IY * layer.IX * input_form.entries(group.count * group.words) * (1 if layer.B == 1 else 2)
    run = weight_form.entries(group.words * layer.FY * layer.FX)
    whole_weights = group.count * group.blocks * run
    depths = sorted({*block_ram_depths(design.family), *DEEP})

    def useful(whole: int) -> list[int]:
        return [depth for depth in depths if depth < 2 * whole or depth == depths[0]]

    psums = [0]
    if "psum_bytes" not in fixed and group.words > 1:
        psums.append(bank_bytes(design, "psum", 1024))
    for psum in psums:
        base = design if "psum_bytes" in fixed else design.with_(psum_bytes=psum)
        for weight_depth in useful(whole_weights) if "weight_bytes" not in fixed else [0]:
            sized = base.with_(weight_bytes=bank_bytes(base, "weight", weight_depth)) if weight_depth else base
            if "input_bytes" in fixed:
                options = [sized]
            else:
                options = [sized.with_(input_bytes=bank_bytes(sized, "input", depth)) for depth in useful(whole_input)]
            fitting = [option for option in options if not overshoot(option, board)]
            if fitting:
                yield fitting[-1]


def _nothing_fits(board: Board, layer: Layer, fixed: dict[str, Any]) -> InputError:
    """Why no array fits: the error of the one asked for, or of the smallest."""
    lanes = next((lanes for lanes in LANES if lanes % fixed.get("drains", 1) == 0), 1)
    options = {"rows": 1, "cols": 1, "lanes": lanes, **fixed}
    try:
        for design in _styles(options):
            check_fits(design, board)
        style = {"multiplier": Multiplier.LUT, "output_multiplier": OutputMultiplier.SERIAL, "drains": options["lanes"]}
        with_smallest_banks({**style, **options})
    except InputError as error:
        if error.where != "design.drains" or "lanes" in fixed:
            return error
        return InputError("no array that fits the board has this many drains", where="design.drains", value=fixed["drains"],
                          allowed=f"a divisor of the lanes ({', '.join(map(str, LANES))} are tried), or a power of two times the lanes")
    return InputError("no array fits the board", where="--board", value=board.name, suggestion="choose a larger board")
