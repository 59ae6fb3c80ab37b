"""Layers of chains in closed form: every tiling that there is, and what the prediction tile by tile says of each."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from dse.fidelity.chains import random_chains
from dse.schedule.axes import Sizes
from dse.schedule.banks import BANKS
from dse.schedule.chain import predict_link
from dse.schedule.closed_form import Run
from dse.schedule.frame import ANYWHERE
from dse.schedule.link_form import Link, LinkSpace, every_size_up_to
from dse.schedule.predict import ProgramLength
from dse.schedule.program_shape import Pattern, program_shape
from dse.schedule.search import bank_depths
from dse.schedule.tiling import IllegalTiling, Order, TilePlan, Tiling
from hdl.design import Design
from hdl.layer import Layer
from hdl.mapping import Grouping
from sim.memory import MemoryTiming

TIMING = MemoryTiming(12, 14, 25)
LINKS = [Link(False, True), Link(True, True), Link(True, False)]


def plan_of(run: Run, link: Link, tiling: Tiling) -> TilePlan:
    return TilePlan(run.design, run.layer, tiling, input_entry=0 if link.input_kept else None,
                    output_frame=ANYWHERE if link.output_kept else None)


def length_of(plan: TilePlan) -> ProgramLength | None:
    shape = program_shape(plan.design, Pattern.of(plan))
    return ProgramLength(shape.beats(plan.design.bus_bits), shape.first_instructions, shape.tile_instructions) if shape.fits else None


def test_equal_to_the_tiles_one_by_one_on_random_chains() -> None:
    random, checked = Random(1), 0
    for point in random_chains(3, 6, 2):
        for at, layer in enumerate(point.layers):
            run, link = Run(point.design, layer, point.timing), Link(at > 0, at < len(point.layers) - 1)
            found = LinkSpace(run, link, Sizes.ALL).fitting(tuple(bank_depths(point.design).tolist()))
            for number in random.sample(range(len(found)), min(20, len(found))):
                plan = plan_of(run, link, found.tiling(number))
                length = length_of(plan)
                assert plan.fits and length is not None
                want = predict_link(plan, length, point.timing)
                got = [getattr(found, name)[number] for name in ("cycles", "beats_read", "beats_written", "issue_cycles",
                                                                 "memory_bound_cycles", "drain_bound_cycles")]
                assert got == [want.cycles, want.beats_read, want.beats_written, want.issue_cycles, want.memory_bound_cycles,
                               want.drain_bound_cycles], (point, str(plan.tiling))
                assert found.needs[:, number].tolist() == [plan.needs().get(kind, (0, 0))[0] for kind in (*BANKS, "parameter")]
                checked += 1
    assert checked > 200


@pytest.mark.parametrize("link", LINKS, ids=str)
@pytest.mark.parametrize("design, layer", [
    (Design(rows=2, cols=4, lanes=2, psum_bytes=2048, accumulator_bits=24, chaining=True),
     Layer.conv(name="dense", K=8, C=8, IY=5, IX=3, FY=3, FX=2, P=1, S=2)),
    (Design(rows=4, cols=4, accumulator_bits=24, input_bytes=2048, chaining=True),
     Layer.conv(name="groups", K=16, C=16, G=4, OY=3, OX=4, FY=1, FX=3))], ids=lambda value: getattr(value, "name", ""))
def test_no_legal_tiling_is_left_out(design: Design, layer: Layer, link: Link) -> None:
    run, group = Run(design, layer, TIMING), Grouping.of(design, layer)
    expected = set()
    for ts, tk, tc, ty, tx in product(*(range(1, size + 1) for size in (group.count, group.outputs, group.words, layer.OY, layer.OX))):
        for order, resident in product(Order, (False, True)):
            try:
                plan = plan_of(run, link, Tiling(ts=ts, tk=tk, tc=tc, ty=ty, tx=tx, order=order, resident=resident))
            except IllegalTiling:
                continue
            several = {loop for loop, parts in plan.loops.items() if len(parts) > 1}
            if order is Order.PIXELS_OUTER and not (several & set("SK") and several & set("YX")):
                continue  # as the other order
            if plan.fits and length_of(plan) is not None:
                expected.add(plan.tiling)
    found = LinkSpace(run, link, Sizes.ALL).fitting(tuple(bank_depths(design).tolist()))
    tilings = [found.tiling(at) for at in range(len(found))]
    assert len(tilings) == len(set(tilings)) > 20
    assert set(tilings) == expected


def test_even_sizes_where_there_are_too_many() -> None:
    run = Run(Design(rows=4, cols=4, accumulator_bits=24, chaining=True), Layer.conv(name="a", K=64, C=4, OY=30, OX=1, FY=1, FX=1), TIMING)
    every = every_size_up_to(run, LINKS[0], 10_000)
    few = every_size_up_to(run, LINKS[0], len(every) - 1)
    assert (every.sizes, few.sizes) == (Sizes.ALL, Sizes.EVEN) and len(few) < len(every)
