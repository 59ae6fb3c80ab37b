"""The closed form, the tile-by-tile prediction and the tile graph: one number; and bounds that never exceed it."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from dse.fidelity.check import Point
from dse.fidelity.points import PRECISIONS, random_design, random_points
from dse.schedule import closed_form, explore
from dse.schedule import program_shape as program_shapes
from dse.schedule.axes import Sizes, channel_cuts, spatial_cuts
from dse.schedule.banks import BANKS, alike, design_with_depths
from dse.schedule.closed_form import Run
from dse.schedule.compiler import compile_program
from dse.schedule.explore import LayerSpace, Objective, tiling_blocks
from dse.schedule.factors import Block
from dse.schedule.graph import graph_cycles, tile_graph
from dse.schedule.phase_kinds import Structure
from dse.schedule.predict import predict
from dse.schedule.program_shape import Pattern, program_config, program_shape
from dse.schedule.tiling import LOOPS, TilePlan
from hdl.design import Design
from hdl.layer import Layer
from hdl.mapping import x_axis, y_axis
from sim.memory import MemoryTiming

POINTS = list(random_points(17, 60, 8))


def plan_of(point: Point) -> TilePlan:
    return TilePlan(point.design, point.layer, point.tiling)


def block_of(point: Point) -> tuple[Block, np.ndarray, np.ndarray]:
    """The block of a point's tiling, and its place in it."""
    design, layer, tiling, plan = point.design, point.layer, point.tiling, plan_of(point)
    tiled = {name for name, loop in plan.loops.items() if len(loop) > 1}
    structure = Structure(tiling.order, tiling.resident, tuple(name for name in LOOPS[tiling.order] if name in tiled))
    channels, y, x = channel_cuts(design, layer), spatial_cuts(y_axis(layer), design.lanes), spatial_cuts(x_axis(layer), 1)
    counts = np.stack([channels.s_count, channels.k_count, channels.c_count]) > 1
    channels = channels.take((counts == np.array([[name in tiled] for name in "SKC"])).all(axis=0))
    y, x = y.take((y.count > 1) == ("Y" in tiled)), x.take((x.count > 1) == ("X" in tiled))
    m = np.flatnonzero((channels.ts == tiling.ts) & (channels.tk == tiling.tk) & (channels.tc == tiling.tc))
    p = np.flatnonzero(y.size == tiling.ty) * len(x.size) + np.flatnonzero(x.size == tiling.tx)
    assert len(m) == len(p) == 1
    return Block(Run(design, layer, point.timing), structure, channels, y, x), m, p


def test_program_shapes_are_those_of_compiled_programs() -> None:
    for point in POINTS:
        plan = plan_of(point)
        shape, program = program_shape(point.design, Pattern.of(plan)), compile_program(plan)
        assert (shape.words, shape.first_instructions, shape.tile_instructions) == (
            len(program.words), program.first_instructions, program.tile_instructions), point


@pytest.mark.parametrize(("options", "layer"), [
    ({"psum_bytes": 4096}, Layer.conv(K=12, C=10, OY=7, OX=7, FY=3, FX=3, P=1)),
    ({"lanes": 2, "psum_bytes": 4096, "cols": 1}, Layer.conv(K=12, C=3, OY=7, OX=6, FY=3, FX=2, P=1, B=2)),
    ({"lanes": 3, "weight_bits": 1, "activation_bits": 1, "multiplier": "lut"}, Layer.conv(K=96, C=48, G=3, IY=9, IX=8, FY=1, FX=1, S=2)),
    ({"activation_bits": 4, "psum_bytes": 4096}, Layer.conv(K=16, C=16, G=8, OY=5, OX=5, FY=3, FX=3, P=1)),
])
def test_program_lengths_of_every_combination_of_differences(options: dict[str, Any], layer: Layer) -> None:
    """One tiling of each structure and of each combination of codes, compiled."""
    design = Design(**{"rows": 2, "cols": 2, "input_bytes": 16384, "weight_bytes": 16384, "output_bytes": 8192, **options})
    seen = 0
    for block in tiling_blocks(Run(design, layer, MemoryTiming(12, 1, 1)), Sizes.ALL):
        channel, row, column, table = block.form.program_codes
        codes = (channel * 16 + row * 4 + column).reshape(len(block.channels.ts), -1)
        for code in np.unique(codes).tolist():
            m, p = np.argwhere(codes == code)[0].tolist()
            plan = TilePlan(design, layer, block.tiling(m, p))
            shape, program = program_shape(design, Pattern.of(plan)), compile_program(plan)
            lengths = (len(program.words), program.beats, program.first_instructions, program.tile_instructions)
            assert tuple(table[code]) == lengths, block.tiling(m, p)
            assert (shape.words, shape.first_instructions, shape.tile_instructions) == (lengths[0], *lengths[2:])
            seen += 1
    assert seen >= 30


def test_closed_form_equals_the_tiles_one_by_one_and_the_graph() -> None:
    for number, point in enumerate(POINTS):
        plan = plan_of(point)
        program = compile_program(plan)
        want = predict(plan, program, point.timing)
        block, m, p = block_of(point)
        form = block.points(m, p)
        got = [float(np.ravel(value)[0]) for value in (form.cycles, form.beats_read, form.stored_beats, form.issue_cycles,
                                                       form.memory_bound_cycles, form.drain_bound_cycles)]
        assert got == [want.cycles, want.beats_read, want.beats_written, want.issue_cycles, want.memory_bound_cycles,
                       want.drain_bound_cycles], point
        needs = plan.needs()
        entries = [float(np.ravel(value)[0]) for value in form.entries_needed()]
        assert entries == [needs.get(kind, (0, 0))[0] for kind in (*BANKS, "parameter")], point
        if number % 4 == 0:
            assert graph_cycles(tile_graph(plan, program, point.timing)) == got[0]


def test_bounds_are_below_and_beats_exact_for_all_tilings_of_a_block() -> None:
    compared = 0
    for point in POINTS:
        block, _, _ = block_of(point)
        for some in block.fitting((4096.0, 4096.0, 4096.0, 4096.0), 1 << 20):
            form, beats = block.points(some.m, some.p), block.beats(some)
            assert (beats == form.beats_read + form.stored_beats).all()
            assert (block.cycles_bound(some, beats) <= form.cycles).all()
            for fast, exact in zip(some.needs, form.entries_needed(), strict=False):
                assert (fast == exact).all()
            compared += len(beats)
    assert compared > 2000


def test_a_grid_and_its_points_agree() -> None:
    point = next(point for point in POINTS if len(plan_of(point).loops["K"]) > 1 and len(plan_of(point).loops["Y"]) > 1)
    block, _, _ = block_of(point)
    grid = block.grid(0, len(block.channels.ts)).cycles
    m, p = np.divmod(np.arange(grid.size), grid.shape[1])
    assert (block.points(m, p).cycles == grid.reshape(-1)).all()


@pytest.mark.parametrize("objective", Objective)
def test_many_banks_at_once_are_each_alone(objective: Objective) -> None:
    point = next(point for point in POINTS if point.layer.macs > 20_000 and point.design.psum_bytes)
    space = LayerSpace(point.design, point.layer)
    depths = np.array([(i, w, o, p) for i in (512, 1024, 2048) for w in (512, 2048) for o in (512, 1024) for p in (0, 512)])
    together = space.best(depths, point.timing, objective)
    for at, row in enumerate(depths):
        alone = space.best(row[None, :], point.timing, objective)
        assert alone.feasible[0] == together.feasible[at]
        if alone.feasible[0]:
            assert alone.tilings[0] == together.tilings[together.tiling_index[at]]
            assert (alone.cycles[0], alone.beats_read[0], alone.beats_written[0]) == (
                together.cycles[at], together.beats_read[at], together.beats_written[at])


@pytest.mark.parametrize("compiled", [False, True])
def test_no_mapping_where_every_program_exceeds_its_ram(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    caches = (closed_form._design_tables, closed_form._kind_tables)
    monkeypatch.setattr(program_shapes, "PROGRAM_DEPTH", 10)
    monkeypatch.setattr(explore, "COMPILED", compiled)
    point = POINTS[0]
    for cached in caches:
        cached.cache_clear()
    try:
        best = LayerSpace(point.design, point.layer).best(np.full((1, 4), 4096), point.timing)
    finally:
        for cached in caches:
            cached.cache_clear()
    assert not best.feasible[0] and best.cycles[0] == 0 and best.tilings == ()


def test_banks_that_are_searched_together_have_programs_of_one_length() -> None:
    random, depths = Random(4), [1 << bits for bits in range(9, 17)]
    for number in range(40):
        design = random_design(random, *PRECISIONS[number % len(PRECISIONS)])
        rows = np.array([[random.choice(depths), random.choice(depths), 512, random.choice((0, 512, 8192))] for _ in range(12)])
        for _, which in alike(design, rows.tobytes()):
            assert len({program_config(design_with_depths(design, rows[at].tolist())) for at in which}) == 1, design


def test_a_deep_weight_bank_beside_a_shallow_one() -> None:
    """From 32,768 entries on a field of the program needs a word of data: it takes longer to fetch."""
    space = LayerSpace(Design(rows=1, cols=1), Layer.conv(K=4, C=4, OY=6, OX=6, FY=3, FX=3, P=1))
    timing = MemoryTiming(12, 14, 25)
    shallow, deep = np.array([[512, 512, 512, 0]]), np.array([[512, 32768, 512, 0]])
    together = space.best(np.concatenate([shallow, deep]), timing)
    assert [space.best(rows, timing).cycles[0] for rows in (shallow, deep)] == together.cycles.tolist()
    plan = TilePlan(design_with_depths(space.design, deep[0].tolist()), space.layer, together.tilings[together.tiling_index[1]])
    assert predict(plan, compile_program(plan), timing).cycles == together.cycles[1]
