"""Look-up tables and flip-flops of whole accelerators, as Yosys makes them, and the estimator's coefficients fitted to them.

    python benchmarks/resources.py measure --data DIR --family xc6s --count 40            # designs to calibrate with
    python benchmarks/resources.py measure --data DIR --family xc6s --count 40 --held-out # designs that calibration never sees
    python benchmarks/resources.py fit --data DIR     # writes dse/estimate/calibration.json
    python benchmarks/resources.py table              # the tables of docs/resources.md, from what fit wrote

A synthesis takes half a minute of a core and more. Each result is a line of ``DIR/FAMILY.jsonl`` as soon as it is there; ``measure`` goes
on where it was stopped. Designs come from a seeded random generator: the same numbers are the same designs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import astuple
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))

from boards.primitives import FAMILIES, Family
from dse.estimate.calibration import DATA, calibration
from dse.estimate.resources import estimate_resources
from dse.estimate.structure import Counts, entry_bits, flip_flops, look_up_tables
from hdl.accelerator import Accelerator
from hdl.design import Design
from hdl.errors import InputError
from hdl.synthesis import synthesise

FIGURES = ("luts", "ffs", "dsps", "block_rams", "distributed_rams")
HELD_OUT = Path(__file__).parent.parent / "tests/dse/estimate/held_out.jsonl"
"""What the tests compare the shipped coefficients with."""
TRAINING_SEED, HELD_OUT_SEED = 1, 2
PRECISIONS = ((8, 8), (8, 8), (8, 8), (4, 4), (4, 8), (2, 2), (1, 1), (1, 1), (1, 8), (8, 4), (16, 16), (8, 16), (2, 8), (1, 4), (4, 1))


def random_design(random: Random, family: Family) -> Design:
    """A design of any style that the family has: mostly small ones, which synthesis finishes within a minute."""
    while True:
        weight_bits, activation_bits = random.choice(PRECISIONS)
        xnor, wide = weight_bits == activation_bits == 1, max(weight_bits, activation_bits) > 8
        options: dict[str, Any] = {
            "rows": random.choice((1, 2, 2, 4, 4, 4, 8, 16) if not wide else (1, 2, 4)),
            "cols": random.choice((16, 24, 32, 64, 96, 128) if xnor else (1, 2, 3, 4, 4, 8, 8, 16)),
            "lanes": random.choice((1, 1, 1, 2, 2, 3, 4)),
            "weight_bits": weight_bits, "activation_bits": activation_bits,
            "accumulator_bits": random.choice((16, 20, 24, 24, 32, 32, 40, 48)),
            "multiplier": "lut" if xnor else random.choice(("dsp", "dsp", "dsp_pair", "lut")),
            "accumulate": "tree" if xnor else random.choice(("tree", "tree", "per_column")),
            "output_multiplier": "serial" if activation_bits == 1 else random.choice(("serial", "serial", "dsp", "lut")),
            "input_bytes": 1 << random.randint(10, 17), "weight_bytes": 1 << random.randint(10, 17),
            "output_bytes": 1 << random.randint(10, 14), "psum_bytes": random.choice((0, 0, 1024, 4096, 16384)),
            "bus_bits": random.choice((16, 16, 32, 32, 64, 128)), "counters": random.random() < 0.5, "chaining": random.random() < 0.3,
            "distributed_depth": random.choice((0, 0, 0, 32, 64))}
        try:
            design = Design(**options, family=family)
            design = design.with_(drains=random.choice(design.legal_drains()))
        except InputError:
            continue
        products = design.macs_per_cycle * design.weight_bits * design.activation_bits if design.multiplier == "lut" else 0
        parallel = design.drains if design.output_multiplier == "lut" else 0
        sums = design.rows * design.lanes * design.accumulator_bits * (design.cols if design.accumulate == "per_column" else 2)
        most = 1500 if random.random() < 0.9 else 5000
        if max(products, 800 * parallel, sums, design.drains * 300, design.macs_per_cycle * 8) <= most:
            return design


def designs(family: Family, count: int, *, held_out: bool) -> list[Design]:
    """The first ``count`` designs to calibrate with, or of those held out."""
    random = Random(f"{HELD_OUT_SEED if held_out else TRAINING_SEED} {family}")
    return [random_design(random, family) for _ in range(count)]


def read(data: Path, family: Family) -> list[dict[str, Any]]:
    """The results so far: a record has ``set``, ``number``, ``design`` and ``cells``."""
    path = data / f"{family}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def measure_one(family: Family, kind: str, number: int, design: Design) -> dict[str, Any]:
    cells = synthesise(Accelerator(design), family=family)[""]
    return {"set": kind, "number": number, "yosys": version("pyosys"), "design": design.to_dict(),
            "luts": cells.luts, "ffs": cells.flip_flops,
            "dsps": cells.dsps, "block_rams": cells.block_rams, "distributed_rams": cells.distributed_rams, "cells": dict(cells.by_type)}


def measure(options: argparse.Namespace) -> None:
    options.data.mkdir(parents=True, exist_ok=True)
    kind = "held-out" if options.held_out else "training"
    done = {record["number"] for record in read(options.data, options.family) if record["set"] == kind}
    todo = [(number, design) for number, design in enumerate(designs(options.family, options.count, held_out=options.held_out))
            if number not in done]
    with ThreadPoolExecutor(options.workers) as pool, (options.data / f"{options.family}.jsonl").open("a") as out:
        for result in as_completed([pool.submit(measure_one, options.family, kind, *each) for each in todo]):
            record = result.result()
            out.write(json.dumps(record) + "\n")
            out.flush()
            print(f"{options.family} {kind} {record['number']}: {record['luts']} LUT, {record['ffs']} FF", file=sys.stderr, flush=True)


# -- the fit ----------------------------------------------------------------------------------------------------------

LUT_PRIORS = {
    "one": 590, "addresses": 1.7, "lanes": 1, "rows": 1.5, "columns": 1, "words": 1, "beats": 0.7, "deep banks": 1,
    "performance counters": None, "chaining": 1, "distributed": 0.2,
    "counters": 1, "counters' sums": 1, "zero points": 1, "pairs": 1, "products": 1, "tree": 1, "tree in blocks": None, "sums": 1,
    "sums in blocks": None, "select": 1, "select's tree": 1,
    "drains": 1, "drains' control": 20, "psum": 1, "lanes' drains": 1, "output threshold": 1, "output serial": 1, "output finish": 1,
    "output products": 1, "output parallel": 1, "output blocks": 0.3}
FF_PRIORS = {
    "one": 300, "fields": 1, "addresses": 1, "lanes": 1, "rows": 1, "beats": 1, "performance counters": 1, "chaining": 1, "distributed": 1,
    "operands": 1, "operands in blocks": None, "products": 1, "products in blocks": None, "pairs in blocks": None, "counters' stages": 1,
    "tree": 1, "tree in blocks": None, "sums": 1, "sums in blocks": None, "select": 1,
    "drains": 1, "delays": 0.8, "psum": 0.8, "output threshold": 1, "output serial": 1, "output finish": 1, "output parallel": 0.8,
    "output blocks": 0.5}
"""What one of each count should cost where look-up tables have six inputs; None: see :data:`TAKEN_OVER`."""
TAKEN_OVER = {Family.SPARTAN6: 0.0, Family.ECP5: 1.0}
"""What is left of a register or adder that a DSP block may take, of a counter that needs nothing but its carry chain: on Xilinx nothing."""
FOUR_INPUTS = 1.6
"""Look-up tables of four inputs in place of one of six, to begin with."""
RELATIVES = {Family.SERIES7: Family.SPARTAN6, Family.ULTRASCALE_PLUS: Family.SERIES7, Family.ICE40: Family.ECP5, Family.GOWIN: Family.ECP5}
"""A family's fit begins with that of its relative, and is that where there are no designs of its own."""
NOISE, DOUBT, DOUBT_OF_RELATIVES = 0.02, 0.5, 0.3
"""Relative standard deviations: of synthesis about the model, of a coefficient about its prior, about that of a relative."""
DOUBT_OF_CONTROL = {Family.SPARTAN6: 0.1}
"""Of what every design has, where it is known: sequencer, requests, loads, stores and issue of an LX9 design take 1,087 look-up tables by
themselves (``docs/benchmarks.md``), 256 bits of addresses among them."""


def fitted(counts: list[Counts], figures: list[int], prior: Mapping[str, float], *, doubt: float, of_control: float) -> dict[str, float]:
    """Least squares of relative errors, with a prior for each coefficient: a few dozen designs would not pin down all of them alone.
    No coefficient is below 0."""
    names = list(prior)
    mean = np.array([prior[name] for name in names], float)
    spread = np.maximum(doubt * mean, 0.15)
    spread[[names.index(name) for name in ("one", "addresses")]] *= of_control / doubt
    free, result = np.ones(len(names), bool), mean.copy()
    matrix = np.array([[float(each.get(name, 0)) for name in names] for each in counts]).reshape(len(counts), len(names))
    target = np.array(figures, float)
    while True:
        rows = np.vstack([matrix[:, free] / (target[:, None] * NOISE), np.diag(1 / spread[free])])
        right = np.concatenate([np.full(len(target), 1 / NOISE), mean[free] / spread[free]])
        result[free] = np.linalg.lstsq(rows, right, rcond=None)[0]
        if (result >= 0).all():
            return {name: float(f"{value:.4g}") for name, value in zip(names, result, strict=True)}
        free &= result > 0
        result[~free] = 0.0


def figures_of(records: list[dict[str, Any]], name: str) -> tuple[list[Counts], list[int]]:
    count = look_up_tables if name == "luts" else flip_flops
    designs_ = [Design.from_dict(record["design"]) for record in records]
    return [count(design, entry_bits(design)) for design in designs_], [record[name] for record in records]


def errors(counts: list[Counts], figures: list[int], costs: Mapping[str, float]) -> NDArray[np.float64]:
    """Relative errors, of the estimate less what synthesis gave."""
    estimates = [sum(costs[name] * float(count) for name, count in each.items()) for each in counts]
    return np.array(estimates) / np.array(figures) - 1


def fit(options: argparse.Namespace) -> None:
    """Coefficients of every family, and their errors on the designs that were held out."""
    families: dict[Family, dict[str, Any]] = {}
    tools, lines = set(), []
    for family in Family:
        records = read(options.data, family)
        sets = {kind: sorted((r for r in records if r["set"] == kind), key=lambda r: r["number"]) for kind in ("training", "held-out")}
        tools |= {record["yosys"] for record in records}
        result: dict[str, Any] = {"training": len(sets["training"]), "held_out": len(sets["held-out"]), "errors": {}}
        for name, priors in (("luts", LUT_PRIORS), ("ffs", FF_PRIORS)):
            relative = RELATIVES.get(family)
            more = FOUR_INPUTS if name == "luts" and FAMILIES[family].lut_inputs == 4 else 1
            prior = families[relative][name] if relative else {key: TAKEN_OVER[family] if value is None else value * more
                                                               for key, value in priors.items()}
            doubt = DOUBT_OF_RELATIVES if relative else DOUBT
            result[name] = fitted(*figures_of(sets["training"], name), prior, doubt=doubt, of_control=DOUBT_OF_CONTROL.get(family, doubt))
            if sets["held-out"]:
                off = np.abs(errors(*figures_of(sets["held-out"], name), result[name]))
                result["errors"][name] = {"median": round(float(np.median(off)), 4), "p90": round(float(np.quantile(off, 0.9)), 4),
                                          "worst": round(float(off.max()), 4)}
        families[family] = result
        lines += [json.dumps({key: record[key] for key in ("number", "design", *FIGURES)}) for record in sets["held-out"]]
        print(family, result["training"], result["held_out"], result["errors"], file=sys.stderr)
    command = "python benchmarks/resources.py fit --data DIR"
    DATA.write_text(json.dumps({"made_by": command, "yosys": sorted(tools), "families": families}, indent=1) + "\n")
    HELD_OUT.write_text("".join(line + "\n" for line in lines))


def table(options: argparse.Namespace) -> None:
    """Markdown: errors by family, then every held-out design."""
    print("| family | to calibrate | held out | LUT: median | nine in ten | worst | FF: median | nine in ten | worst |")
    print("|" + " --- |" * 9)
    for family in Family:
        made = calibration(family)
        cells = [f"{value:.1%}" for name in ("luts", "ffs") for value in (astuple(made.errors[name]) if made.errors else ())]
        print(f"| {family} | {made.training} | {made.held_out} | " + " | ".join(cells or ["not measured"] + [""] * 5) + " |")
    print("\n| family | design | LUT | estimate | off | FF | estimate | off |\n|" + " --- |" * 8)
    for line in HELD_OUT.read_text().splitlines():
        record = json.loads(line)
        design = Design.from_dict(record["design"])
        estimate = estimate_resources(design)
        products = "XNOR" if design.is_xnor else f"{design.multiplier}, {design.accumulate}"
        cells = [cell for name in ("luts", "ffs") for cell in (f"{record[name]:,}", f"{getattr(estimate, name):,}",
                                                               f"{getattr(estimate, name) / record[name] - 1:+.1%}")]
        stage = "threshold" if design.has_threshold_output else design.output_multiplier
        print(f"| {design.family} | {design.array} {design.precision}, {products}, {design.drains} {stage} | " + " | ".join(cells) + " |")


COMMANDS = {"measure": measure, "fit": fit, "table": table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("--data", type=Path, default=Path("resources"), help="folder of the results")
    parser.add_argument("--family", type=Family, choices=list(Family), default=Family.SPARTAN6)
    parser.add_argument("--count", type=int, default=40, help="designs, those that are there among them")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    COMMANDS[options.what](options)


if __name__ == "__main__":
    main()
