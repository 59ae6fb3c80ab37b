"""Grids of exact figures: those of the closed form, tiling by tiling, compiled or not."""

from __future__ import annotations

from dataclasses import fields, replace
from random import Random

import numpy as np
import pytest

from dse.fidelity.points import GEOMETRIES, PRECISIONS, random_design, random_layer, random_timing
from dse.schedule.axes import Sizes
from dse.schedule.closed_form import Run
from dse.schedule.compiler import compile_program
from dse.schedule.grid import Grid, evaluate_grids
from dse.schedule.kernel import library
from dse.schedule.predict import predict
from dse.schedule.tiling import TilePlan
from hdl.compatibility import check_layer
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.memory import MemoryTiming

CASES = 50


def random_run(random: Random, number: int) -> Run:
    while True:
        design = random_design(random, *PRECISIONS[number % len(PRECISIONS)])
        try:
            layer = random_layer(random, GEOMETRIES[number % len(GEOMETRIES)], design.activation_bits)
            if layer.G == 1 and layer.kind == "conv":  # larger, so that loops have more tiles
                rows = (layer.IY * 2 + layer.PT + layer.PB - layer.effective_fy) // layer.SY + 1
                layer = replace(layer, K=layer.K * 3, IY=layer.IY * 2, OY=rows)
            check_layer(design, layer)
        except InputError:
            continue
        return Run(design, layer, random_timing(random))


@pytest.mark.skipif(library(build=True) is None, reason="no C++ compiler that builds the kernel")
def test_compiled_grids_are_those_of_the_closed_form() -> None:
    random, tilings, structures = Random(11), 0, set()
    for number in range(CASES):
        run, sizes = random_run(random, number), Sizes.ALL if number % 3 == 0 else Sizes.EVEN
        for got, want in zip(evaluate_grids(run, sizes), evaluate_grids(run, sizes, compiled=False), strict=True):
            for field in fields(Grid):
                assert np.array_equal(getattr(got, field.name), getattr(want, field.name)), (run, got.structure, field.name)
            tilings += got.cycles.size
            structures.add(got.structure)
    assert (tilings > 20_000 and len(structures) > 60), (tilings, len(structures))


def test_a_tiling_of_a_grid_is_what_its_compiled_program_takes() -> None:
    run = Run(Design(rows=2, cols=4, psum_bytes=4096, input_bytes=1 << 16), Layer.conv(K=10, C=9, OY=6, OX=5, FY=3, FX=1, P=1),
              MemoryTiming(9, 2, 3))
    random, seen = Random(2), 0
    for grid in evaluate_grids(run):
        m, y, x = (random.randrange(size) for size in grid.cycles.shape)
        plan = TilePlan(run.design, run.layer, grid.tiling(m, y, x))
        want = predict(plan, compile_program(plan), run.timing)
        assert (grid.cycles[m, y, x], grid.beats_read[m, y, x], grid.beats_written[m, 0, 0]) == (
            want.cycles, want.beats_read, want.beats_written)
        seen += 1
    assert seen >= 20
