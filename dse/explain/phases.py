"""Cycles and beats from the kinds of phases: the closed form of `docs/timing.md`, written out with its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from dse.explain.derivation import Derivation
from dse.explain.tiles import TileSizes
from dse.schedule.axes import LAST
from dse.schedule.compiler import Program
from dse.schedule.phase_kinds import Factor, Kind, Structure, kinds, store_key
from dse.schedule.predict import Prediction
from dse.schedule.tiling import LOOPS, TilePlan
from hdl import timing

CONSTANTS = ("START_CYCLES", "FETCH_END_CYCLES", "FIRST_EVALUATION_CYCLES", "INSTRUCTION_CYCLES", "EVALUATION_CYCLES",
             "PHASE_CHANGE_CYCLES", "MEMORY_START_CYCLES", "MEMORY_END_CYCLES", "COMPUTE_START_CYCLES")
FACTORS = {"rest": "(tiles_{0} - 1)", "inner": "(tiles_{0} - 2)", "tail": "max(0, tiles_{0} - 3)", "three": "min(1, max(0, tiles_{0} - 2))"}
PARTS = {
    "start_part": "program fetched and first evaluated",
    "first_load_part": "the first tile's data arrive, nothing is computed yet",
    "vectors_part": "operand vectors issued: the array works",
    "drain_part": "the array waits for the drains",
    "fill_part": "a tile's first vector and last results: start and tail of each tile",
    "evaluation_part": "the next tile's fields are not evaluated yet",
    "memory_part": "all but the memory is done and waits for it",
    "change_part": "from one phase to the next",
    "last_store_part": "the last tile's results leave",
}
"""Where the cycles go; they add up to all of them."""


@dataclass(frozen=True)
class _Work:
    """A kind of phase in names of sizes: how often it occurs, beats that move by what they are, pixel groups, vectors, spacing."""

    kind: Kind
    count: str
    moved: dict[str, str]
    groups: str = ""
    vectors: str = ""
    spaced: str = ""

    @property
    def title(self) -> str:
        loads = [name for name in self.moved if name != STORED]
        does = [*([STORED] if STORED in self.moved else []), *([f"load {', '.join(loads)}"] if loads else []),
                *(["compute"] if self.kind.compute else []), *(["evaluate"] if self.kind.evaluates else [])]
        return "; ".join(does).replace(STORED, "store")


STORED = "stored"


class _Sums:
    """Terms of the sums over all phases, as texts of formulas."""

    def __init__(self) -> None:
        self.cycles: list[str] = []
        self.parts: dict[str, list[str]] = {name: [] for name in PARTS}
        self.beats: dict[str, list[str]] = {name: [] for name in ("input", "weights", "parameters", STORED)}


def explain_cycles(d: Derivation, plan: TilePlan, program: Program, prediction: Prediction) -> None:
    """Program, phases, and their sum; beats and bytes. Each is checked against the prediction."""
    loops = tuple(loop for loop in LOOPS[plan.tiling.order] if len(plan.loops[loop]) > 1)
    structure = Structure(plan.tiling.order, plan.tiling.resident, loops)
    sizes = TileSizes(d, plan, structure)
    works = [_work(sizes, kind) for kind in kinds(structure) if _occurs(sizes, kind.counts)]
    key = store_key(structure, dict.fromkeys(loops, LAST))
    assert key is not None
    last = _store(sizes, key)
    _explain_program(d, program)
    sums = _Sums()
    for number, work in enumerate(works, start=1):
        _explain_phases(d, work, number, sums)
    d.section("Last phase: a store alone")
    d.let("last_store_beats", last, "beats")
    d.let("last_store", "MEMORY_START_CYCLES + latency_cycles + ceil(last_store_beats/beats_per_cycle) + 1", "cycles")
    sums.beats[STORED].append("last_store_beats")
    _explain_sum(d, sums, prediction)
    _explain_bytes(d, sums, prediction)


def _explain_sum(d: Derivation, sums: _Sums, prediction: Prediction) -> None:
    d.section("Cycles")
    d.let("cycles", " + ".join(["before", *sums.cycles, "last_store"]), "cycles", "predicted; what the simulation measures")
    d.check("cycles", prediction.cycles)
    d.section("Where the cycles go")
    parts = {**sums.parts, "start_part": ["before"], "last_store_part": ["last_store"], "change_part": ["PHASE_CHANGE_CYCLES*(tiles + 1)"]}
    for name, meaning in PARTS.items():
        d.let(name, " + ".join(parts[name]) or "0", "cycles", meaning)
    d.let("sum_of_parts", " + ".join(PARTS), "cycles", "the same cycles, by what they are spent on")
    d.check("sum_of_parts", prediction.cycles)
    d.check("vectors_part", prediction.issue_cycles)
    d.check("memory_part", prediction.memory_stall_cycles)


def _explain_program(d: Derivation, program: Program) -> None:
    d.section("Program")
    for name in CONSTANTS:
        d.given(name, getattr(timing, name), "cycles", "hdl/timing.py")
    d.given("program_beats", program.beats, "beats", "counted: the compiled program")
    d.given("first_instructions", program.first_instructions, "instructions", "counted: before the first phase")
    d.given("tile_instructions", program.tile_instructions, "instructions", "counted: for every further tile")
    d.let("fetch", "START_CYCLES + latency_cycles + ceil(program_beats/beats_per_cycle)", "cycles")
    d.let("before", "fetch + FETCH_END_CYCLES + FIRST_EVALUATION_CYCLES + INSTRUCTION_CYCLES*first_instructions + PHASE_CHANGE_CYCLES",
          "cycles", "before the first phase")
    d.let("evaluation", "EVALUATION_CYCLES + INSTRUCTION_CYCLES*tile_instructions", "cycles", "of a further tile's fields")


def _store(sizes: TileSizes, key: tuple[int, ...]) -> str:
    y, x, channels = key
    return f"{sizes.outputs('Y', y)}*{sizes.outputs('X', x)}*{sizes.pixel_out(channels)}"


def _work(sizes: TileSizes, kind: Kind) -> _Work:
    """The formulas of a kind of phase; defines the sizes that they name."""
    count = " + ".join("*".join(FACTORS[what].format(loop) for loop, what in factors) or "1" for factors in kind.counts)
    y_x_w, s_k_c, s_k = kind.load
    moved: dict[str, str] = {}
    if kind.store is not None:
        moved[STORED] = _store(sizes, kind.store)
    if y_x_w is not None:
        y, x, w = y_x_w
        moved["input"] = f"{sizes.loaded('Y', y)}*{sizes.loaded('X', x)}*{sizes.pixel_in(w)}"
    if s_k_c is not None:
        s, k, c = s_k_c
        moved["weights"] = f"{sizes.groups(s)}*{sizes.records(k)}*{sizes.runs(c)}"
    if s_k is not None:
        moved["parameters"] = f"{sizes.groups(s_k[0])}*{sizes.channels(s_k[1])}*parameter_beats"
    if kind.compute is None:
        return _Work(kind, count, moved)
    y, x, s, k, c = kind.compute
    groups = f"{sizes.band(y)}*{sizes.outputs('X', x)}*{sizes.groups(s)}*passes*{sizes.blocks(k)}"
    return _Work(kind, count, moved, groups, sizes.vectors(c), sizes.spaced(c))


def _explain_phases(d: Derivation, work: _Work, number: int, sums: _Sums) -> None:
    """One kind of phase: how often, what moves, what is computed, how long it takes."""
    d.section(f"Phases of kind {number}: {work.title}")
    times, groups, compute, memory = (f"{name}_{number}" for name in ("phases", "pixel_groups", "compute", "memory"))
    d.let(times, work.count, "phases")
    for name, expression in work.moved.items():
        d.let(f"{name}_beats_{number}", expression, "beats")
        sums.beats[name].append(f"{times}*{name}_beats_{number}")
    busy = []
    if work.groups:
        spaced, vectors = work.spaced, work.vectors
        d.let(groups, work.groups, "groups", "up to rows channels of one pixel, in every lane")
        d.let(compute, f"COMPUTE_START_CYCLES + (lanes - 1) + ({groups} - 1)*{spaced} + ({vectors} - 1) + tail + 1", "cycles")
        busy.append(compute)
        sums.parts["vectors_part"].append(f"{times}*{groups}*{vectors}")
        sums.parts["drain_part"].append(f"{times}*({groups} - 1)*({spaced} - {vectors})")
        sums.parts["fill_part"].append(f"{times}*(COMPUTE_START_CYCLES + (lanes - 1) + tail)")
    if work.kind.evaluates:
        busy.append("evaluation")
        if work.groups:
            sums.parts["evaluation_part"].append(f"{times}*max(0, evaluation - {compute})")
    if work.moved:
        beats = " + ".join(f"{name}_beats_{number}" for name in work.moved)
        d.let(memory, f"MEMORY_START_CYCLES + latency_cycles + ceil(({beats})/beats_per_cycle) + MEMORY_END_CYCLES", "cycles")
        if work.groups:
            sums.parts["memory_part"].append(f"{times}*max(0, {memory} - {_longest(busy)})")
        else:
            sums.parts["first_load_part"].append(f"{times}*{_longest([*busy, memory])}")
        busy.append(memory)
    d.let(f"length_{number}", f"{_longest(busy)} + PHASE_CHANGE_CYCLES", "cycles")
    sums.cycles.append(f"{times}*length_{number}")


def _longest(names: list[str]) -> str:
    return f"max({', '.join(names)})" if len(names) > 1 else names[0]


def _occurs(sizes: TileSizes, counts: tuple[tuple[Factor, ...], ...]) -> bool:
    total = 0
    for factors in counts:
        times = 1
        for loop, what in factors:
            tiles = len(sizes.plan.loops[loop])
            times *= {"rest": tiles - 1, "inner": tiles - 2, "tail": max(0, tiles - 3), "three": int(tiles > 2)}[what]
        total += times
    return total > 0


def _explain_bytes(d: Derivation, sums: _Sums, prediction: Prediction) -> None:
    d.section("Bytes")
    for name, moved, what in (("input_beats", "input", "of the input, as often as tiles load it"),
                              ("weight_beats", "weights", "of weights"), ("parameters_beats", "parameters", "of the output stage"),
                              ("written_beats", STORED, "of the output")):
        d.let(name, " + ".join(sums.beats[moved]), "beats", what)
    d.let("read_beats", "input_beats + weight_beats + parameters_beats + program_beats", "beats")
    d.let("bytes_read", "read_beats*bus_bits/8", "bytes")
    d.let("bytes_written", "written_beats*bus_bits/8", "bytes")
    d.let("bytes_moved", "bytes_read + bytes_written", "bytes")
    d.let("above_compulsory", "bytes_moved*8/compulsory_bits", "times", "the bytes that no schedule can do without")
    d.check("read_beats", prediction.beats_read)
    d.check("written_beats", prediction.beats_written)
