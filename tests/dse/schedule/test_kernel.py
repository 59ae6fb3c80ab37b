"""The compiled search: the results of the NumPy search, all of them."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from random import Random

import numpy as np
import pytest

import dse.schedule.explore
from dse.fidelity.points import GEOMETRIES, PRECISIONS, random_design, random_layer, random_timing
from dse.schedule.axes import Sizes
from dse.schedule.explore import LayerSpace, Mappings, Objective
from dse.schedule.kernel import _flattened, library
from dse.schedule.phase_kinds import structures
from hdl.compatibility import check_layer
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.memory import MemoryTiming

CASES = 150
TIMING = MemoryTiming(12, 14, 25)
needs_kernel = pytest.mark.skipif(library(build=True) is None, reason="no C++ compiler that builds the kernel")


def random_case(random: Random, number: int) -> tuple[Design, Layer]:
    while True:
        design = random_design(random, *PRECISIONS[number % len(PRECISIONS)])
        try:
            layer = random_layer(random, GEOMETRIES[number % len(GEOMETRIES)], design.activation_bits)
            if random.random() < 0.5:  # larger, so that loops have more tiles
                layer = replace(layer, K=layer.K * 4, IY=layer.IY * 2) if layer.G == 1 and layer.kind == "conv" else layer
            check_layer(design, layer)
        except InputError:
            continue
        return design, layer


def random_depths(random: Random) -> np.ndarray:
    """Some configurations, few and many, also such that nothing fits and twice the same."""
    some = (1, 2, 8, 16, 40, 100, 512, 600, 1024, 4096, 50_000)
    levels = [[random.choice(some) for _ in range(random.choice((1, 2, 4)))] for _ in range(4)]
    levels[3] = random.choice(([0], [512], levels[3], [0, *levels[3]]))
    return np.array([[random.choice(column) for column in levels] for _ in range(random.choice((1, 5, 40)))], np.int64)


def both(space: LayerSpace, depths: np.ndarray, timing: MemoryTiming, objective: Objective,
         monkeypatch: pytest.MonkeyPatch) -> tuple[Mappings, Mappings]:
    monkeypatch.setattr(dse.schedule.explore, "COMPILED", False)
    plain = space.best(depths, timing, objective)
    monkeypatch.setattr(dse.schedule.explore, "COMPILED", True)
    monkeypatch.setattr(dse.schedule.explore, "_Search", None)  # the kernel it must be
    compiled = space.best(depths, timing, objective)
    monkeypatch.undo()
    return plain, compiled


def assert_same(plain: Mappings, compiled: Mappings) -> None:
    for field in fields(Mappings):
        want, got = getattr(plain, field.name), getattr(compiled, field.name)
        if isinstance(want, np.ndarray):
            assert got.dtype == want.dtype and (got == want).all(), field.name
        else:
            assert got == want, field.name


@needs_kernel
def test_the_kernel_finds_what_numpy_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(5)
    seen = {"feasible": 0, "infeasible": 0, "resident": 0, "lanes": 0, "groups": 0, "batch": 0, "stride": 0, "psum": 0, "no psum": 0,
            "several tilings": 0}
    for number in range(CASES):
        design, layer = random_case(random, number)
        sizes = random.choice((Sizes.ALL, Sizes.EVEN, Sizes.EVEN))
        depths, timing, objective = random_depths(random), random_timing(random), list(Objective)[number % 3]
        space = LayerSpace(design, layer, sizes)
        plain, compiled = both(space, depths, timing, objective, monkeypatch)
        assert_same(plain, compiled)
        found = {"feasible": plain.feasible.any(), "infeasible": not plain.feasible.all(),
                 "resident": any(tiling.resident for tiling in plain.tilings), "lanes": design.lanes > 1, "groups": layer.G > 1,
                 "batch": layer.B > 1, "stride": layer.SY > 1 or layer.SX > 1, "psum": depths[:, 3].any(),
                 "no psum": (depths[:, 3] == 0).any(), "several tilings": len(plain.tilings) > 1}
        for name, there in found.items():
            seen[name] += bool(there)
    assert min(seen.values()) >= 5, seen


@needs_kernel
@pytest.mark.parametrize("objective", Objective)
def test_many_banks_and_many_tilings(objective: Objective, monkeypatch: pytest.MonkeyPatch) -> None:
    design = Design(rows=4, cols=4, accumulator_bits=32, psum_bytes=4096)
    layer = Layer.conv(K=128, C=128, OY=28, OX=28, FY=3, FX=3, P=1)
    depths = np.array([(i, w, o, p) for i in (512, 1024, 4096) for w in (512, 2048, 4096) for o in (512, 2048) for p in (0, 512, 1024)])
    plain, compiled = both(LayerSpace(design, layer, Sizes.EVEN), depths, TIMING, objective, monkeypatch)
    assert_same(plain, compiled)
    assert plain.compared > 20_000 and len(plain.tilings) > 5


def test_the_kernel_has_room_for_every_structure() -> None:
    """Of loops with several tiles, orders and residencies: all combinations."""
    count = 0
    for batch, *tiled in product((1, 2), *((False, True),) * 5):
        for structure in structures(batch, tuple(tiled[:3]), *tiled[3:]):
            count += len(_flattened(structure)) > 0
    assert count > 100


@needs_kernel
def test_groups_in_tiles_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """AlexNet's grouped layers have several tiles along every loop."""
    design = Design(rows=8, cols=8, accumulator_bits=32, psum_bytes=1 << 15, bus_bits=32)
    layer = Layer.conv(K=32, C=32, G=2, OY=13, OX=13, FY=3, FX=3, P=1)
    depths = np.array([(512, 512, 512, 512), (1024, 1024, 512, 1024)])
    plain, compiled = both(LayerSpace(design, layer, Sizes.EVEN), depths, TIMING, Objective.BOTH, monkeypatch)
    assert_same(plain, compiled)


@pytest.mark.parametrize("compiler", ["no-such-compiler", "'", "false"])
def test_without_a_compiler_that_works_numpy_searches(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Layer.conv(K=8, C=6, OY=5, OX=4, FY=3, FX=3, P=1)
    space, depths = LayerSpace(Design(rows=2, cols=2), layer, Sizes.EVEN), np.array([[512, 512, 512, 0], [1, 1, 1, 0]])
    want = space.best(depths, TIMING)
    monkeypatch.setenv("CXX", compiler)
    library.cache_clear()
    try:
        assert library(build=True) is None
        assert_same(want, space.best(depths, TIMING))
    finally:
        library.cache_clear()
