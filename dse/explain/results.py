"""What comes out: bounds, frames a second under each, the factors of utilisation, rates, and the least traffic."""

from __future__ import annotations

from math import ceil

from dse.estimate.bounds import capacity_bytes, communication_lower_bound_bytes
from dse.explain.derivation import Derivation
from dse.schedule.predict import Prediction
from dse.schedule.tiling import TilePlan
from hdl.mapping import x_axis, y_axis

BOUNDS = ("compute", "memory", "drain")
DATA_BANKS = ("input", "weight", "output", "psum")


def explain_results(d: Derivation, plan: TilePlan, prediction: Prediction) -> None:
    """All that follows from cycles and bytes."""
    _bounds(d, plan, prediction)
    _rates(d)
    _utilisation(d, plan)
    _least_traffic(d, plan)


def _over(loop: str, first: str, last: str) -> str:
    """Sum of a quantity over the tiles of a loop."""
    return f"({first}*(tiles_{loop} - 1) + {last})"


def _bounds(d: Derivation, plan: TilePlan, prediction: Prediction) -> None:
    d.section("Bounds: what each resource alone would need")
    several = len(plan.loops["C"]) > 1
    d.let("bands", _over("Y", "ceil(min(ty, OY)/lanes)", "ceil((OY - (tiles_Y - 1)*ty)/lanes)"), "rows", "of a lane, over the tiles")
    if plan.grouping.packed == 1:
        blocks = _over("K", "ceil(min(tk, supergroup_outputs)/rows)", "ceil((supergroup_outputs - (tiles_K - 1)*tk)/rows)")
        d.let("array_blocks", f"supergroups*passes*{blocks}", "blocks", "of an output pixel, over the tiles")
    else:
        d.let("array_blocks", "supergroups*passes*blocks", "blocks", "of an output pixel, over the tiles")
    d.let("pixel_groups", "B*OX*bands*array_blocks", "groups", "for each tile of input channels")
    d.let("compute_bound", "pixel_groups*words*FY*FX", "cycles", "operand vectors, one a cycle")
    d.let("memory_bound", "ceil((read_beats - program_beats + written_beats)/beats_per_cycle)", "cycles", "beats at the offered rate")
    firsts = ("L_first", "L_last") if several else ("L_first",)
    limited = any(d["drain"] > d[name] for name in firsts)
    if limited:
        each = f"max({firsts[0]}, drain)*(tiles_C - 1) + max({firsts[-1]}, drain)"
        note = "the longer of vectors and drains, for some reductions are shorter than their drains take"
    else:
        each, note = "tiles_C*drain", "results at the drains' rate"
    d.let("drain_bound", f"pixel_groups*({each})", "cycles", note)
    for name in BOUNDS:
        d.check(f"{name}_bound", getattr(prediction, f"{name}_bound_cycles"))
    d.let("largest_bound", "max(compute_bound, memory_bound, drain_bound)", "cycles", f"{prediction.bound[0]}-bound")
    d.let("beyond_bound", "cycles - largest_bound", "cycles", "beyond it: what no other resource hides")


def _rates(d: Derivation) -> None:
    d.section("Time")
    d.let("seconds", "cycles/(clock_mhz*10**6)", "s")
    d.let("frames_per_s", "1/seconds", "1/s", "this layer alone, run after run")
    for name in BOUNDS:
        d.let(f"frames_per_s_{name}", f"clock_mhz*10**6/{name}_bound", "1/s", f"if the {name} bound were all")
    d.let("gops", "ops/seconds/10**9", "Gop/s", "1 MAC = 2 ops")
    d.let("external_mb_s", "bytes_moved/seconds/10**6", "MB/s", "average over the run")
    d.let("bytes_per_cycle", "bytes_moved/cycles", "bytes/cycle")
    d.let("ops_per_byte", "ops/bytes_moved", "ops/byte", "of the bytes that are moved")
    d.let("ridge_ops_per_byte", "peak_gops*1000/offered_mb_s", "ops/byte", "above it the array is the roof, below it the memory")
    d.let("roof_gops", "min(peak_gops, offered_mb_s*compulsory_ops_per_byte/1000)", "Gop/s",
          "roofline (Williams, Waterman, Patterson 2009) of this array: no mapping is faster")


def _utilisation(d: Derivation, plan: TilePlan) -> None:
    """MACs over MACs that the array could have done, as a product of what each fold leaves empty and of time."""
    d.section("Utilisation: why")
    d.let("columns_used", "(C/G)/(words*cols)", "", "C on cols: input channels of a group over the columns of its words")
    d.let("rows_used", "K/(array_blocks*rows)", "", "K on rows: output channels over the rows of all blocks")
    d.let("lanes_used", "OY/(bands*lanes)", "", "OY on lanes: output rows over the rows of all bands")
    d.let("time_used", "vectors_part/cycles", "", "cycles that issue an operand vector")
    d.let("utilization", "columns_used*rows_used*lanes_used*time_used", "", "of the array's MACs")
    d.let("utilization_by_macs", "macs/(cycles*macs_per_cycle)", "", "the same")
    d.check("utilization", d["utilization_by_macs"])
    d.let("padding_share", "1 - real_macs/macs", "", "of the MACs are of padded taps, which take their cycle")


def _least_traffic(d: Derivation, plan: TilePlan) -> None:
    d.section("Least traffic for these banks")
    design, layer = plan.design, plan.layer
    kinds = [kind for kind in DATA_BANKS if kind in design.bank_kinds]
    for kind in kinds:
        d.given(f"{kind}_banks", design.bank_count(kind), "banks", "the design")
        d.given(f"{kind}_depth", design.bank_depth(kind), "entries", "of each, as RAM holds them")
        d.given(f"{kind}_width", design.bank_width_bits(kind), "bits", "of an entry")
    d.let("capacity", "floor((" + " + ".join(f"{kind}_depth*{kind}_width*{kind}_banks" for kind in kinds) + ")/8)", "bytes")
    d.check("capacity", capacity_bytes(design))
    d.let("element_bits", "min(weight_bits, activation_bits)", "bits", "the narrowest: keeps the bound safe")
    d.let("capacity_elements", "floor(capacity*8/element_bits)", "elements")
    places = ceil(layer.FY / y_axis(layer).stride) * ceil(layer.FX / x_axis(layer).stride)
    d.let("places", "ceil(FY/rows_stride)*ceil(FX/columns_stride)", "", "of the lowered input in which one input stands")
    assert d["places"] == places
    d.let("moving_phases", "floor(real_macs/sqrt(8*places*capacity_elements**3))", "",
          "Irony, Toledo and Tiskin 2004: each moves the capacity once")
    d.let("lower_bound_bytes", "max(compulsory_bytes, floor(moving_phases*capacity_elements*element_bits/8))", "bytes",
          "no schedule on this design moves fewer")
    d.check("lower_bound_bytes", communication_lower_bound_bytes(design, layer))
