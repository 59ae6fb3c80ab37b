"""The estimate beside synthesis: on designs that calibration never saw, stored by `benchmarks/resources.py fit`."""

import json
from pathlib import Path

import numpy as np
import pytest

from boards.primitives import Family
from dse.estimate.calibration import Calibration, Errors, calibration
from dse.estimate.resources import estimate_logic, estimate_resources
from dse.estimate.structure import entry_bits, flip_flops, look_up_tables
from hdl.design import Design

RECORDS = [json.loads(line) for line in Path(__file__).with_name("held_out.jsonl").read_text().splitlines()]
DESIGNS = [(Design.from_dict(record["design"]), record) for record in RECORDS]
FAMILIES = sorted({design.family for design, _ in DESIGNS})
SMALL = Design(rows=2, cols=2, weight_bits=4, activation_bits=4, accumulator_bits=20, counters=False, bus_bits=32)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["luts", "ffs"])
def test_errors_on_designs_that_calibration_never_saw(family, name):
    pairs = [(getattr(estimate_resources(design), name), record[name]) for design, record in DESIGNS if design.family == family]
    off = np.abs([estimate / real - 1 for estimate, real in pairs])
    made = calibration(family)
    assert made.held_out == len(pairs)
    stated = made.errors[name]
    # What is shipped says of itself: to the rounding of single figures.
    assert [np.median(off), np.quantile(off, 0.9), off.max()] == pytest.approx([stated.median, stated.p90, stated.worst], abs=0.001)
    if not made.rough:
        assert np.median(off) <= 0.05 and np.quantile(off, 0.9) <= 0.12 and off.max() <= 0.20


def test_blocks_are_exact_on_stored_designs():
    for design, record in DESIGNS:
        got = estimate_resources(design)
        assert all(getattr(got, name) == record[name] for name in ("dsps", "block_rams", "distributed_rams")), design


@pytest.mark.parametrize("family", list(Family))
def test_every_count_has_a_cost_that_is_not_negative(family):
    made = calibration(family)
    xnor = Design(rows=2, cols=16, weight_bits=1, activation_bits=1, multiplier="lut", family=family)
    parallel = Design(rows=2, cols=2, output_multiplier="lut", accumulate="per_column", family=family, psum_bytes=4096)
    for design in (xnor, parallel):
        entries = entry_bits(design)
        assert set(look_up_tables(design, entries)) <= set(made.luts) and set(flip_flops(design, entries)) <= set(made.ffs)
    assert min(made.luts.values()) >= 0 and min(made.ffs.values()) >= 0


def test_arrays_of_banks_are_single_designs():
    sizes = [1 << 12, 1 << 14, 1 << 17]
    designs = [SMALL.with_(input_bytes=size, psum_bytes=size // 4) for size in sizes]
    each = [entry_bits(design) for design in designs]
    luts, ffs = estimate_logic(SMALL, {kind: np.array([entries[kind] for entries in each]) for kind in each[0]})
    assert luts.tolist() == [estimate_resources(design).luts for design in designs]
    assert ffs.tolist() == [estimate_resources(design).ffs for design in designs]
    assert luts[0] < luts[2] and ffs[0] < ffs[2]


@pytest.mark.parametrize(("held_out", "errors", "rough", "label"), [
    (0, {}, True, "rough estimate, unchecked"),
    (12, {"luts": Errors(0.03, 0.08, 0.1), "ffs": Errors(0.01, 0.02, 0.03)}, True, "rough estimate, nine in ten within 8%"),
    (40, {"luts": Errors(0.03, 0.08, 0.1), "ffs": Errors(0.01, 0.02, 0.03)}, False, "estimate, nine in ten within 8%"),
    (40, {"luts": Errors(0.03, 0.08, 0.3), "ffs": Errors(0.01, 0.02, 0.03)}, True, "rough estimate, nine in ten within 8%"),
])
def test_label(held_out, errors, rough, label):
    made = Calibration(Family.ECP5, {}, {}, training=30, held_out=held_out, errors=errors)
    assert (made.rough, made.label) == (rough, label)


@pytest.mark.parametrize(("family", "weight_bits", "activation_bits", "dsps"), [
    ("xc6s", 2, 2, 0), ("xc7", 2, 2, 0), ("xc6s", 1, 4, 2), ("ice40", 1, 4, 0), ("ice40", 4, 1, 0), ("ice40", 2, 4, 2), ("ecp5", 2, 2, 2)])
def test_pairs_that_synthesis_finds_too_narrow(family, weight_bits, activation_bits, dsps):
    """As synthesised: `PairUnit` of two columns, 2026-12-01 (ECP5's rule has no least product)."""
    design = Design(rows=2, cols=2, weight_bits=weight_bits, activation_bits=activation_bits, multiplier="dsp_pair", accumulator_bits=20,
                    family=family)
    assert design.array_dsps == dsps
