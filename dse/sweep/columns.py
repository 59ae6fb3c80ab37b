"""The columns of a sweep's results: names, types, units and meanings. `docs/sweep.md` has the same table."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())
INT, LONG, REAL, TRUTH = pa.int32(), pa.int64(), pa.float64(), pa.bool_()


class Column(NamedTuple):
    """``unit``: "" for none. ``nullable``: empty where the point was not evaluated, or is feasible (``reason``, ``limiting``)."""

    type: pa.DataType
    unit: str
    meaning: str
    nullable: bool = False


COLUMNS: dict[str, Column] = {
    "index": Column(LONG, "", "position in the space, over all boards of the sweep"),
    "board": Column(TEXT, "", "board"),
    "workload": Column(TEXT, "", "workload"),
    "family": Column(TEXT, "", "of the board's device: xc6s, xc7, xcup, ecp5, ice40 or gowin"),
    "rows": Column(INT, "", "output channels in parallel"),
    "cols": Column(INT, "", "input channels in parallel"),
    "lanes": Column(INT, "", "bands of output rows in parallel"),
    "precision": Column(TEXT, "", "weight and activation bits, as w8a8"),
    "weight_bits": Column(INT, "bits", "width of a weight"),
    "activation_bits": Column(INT, "bits", "width of an activation"),
    "accumulator_bits": Column(INT, "bits", "width of an accumulator: what the widest layer needs, unless the space fixes it"),
    "multiplier": Column(TEXT, "", "dsp, dsp_pair or lut"),
    "accumulate": Column(TEXT, "", "tree or per_column"),
    "drains": Column(INT, "", "parallel result paths"),
    "output_multiplier": Column(TEXT, "", "serial, dsp or lut"),
    "distributed_depth": Column(INT, "entries", "banks of at most this many are distributed RAM; 0 is none"),
    "chaining": Column(TRUTH, "", "tensors can stay on chip from one layer to the next ([chains.md](chains.md))"),
    "input_bytes": Column(LONG, "bytes", "input banks, all together"),
    "weight_bytes": Column(LONG, "bytes", "weight banks, all together"),
    "output_bytes": Column(LONG, "bytes", "output banks, all together"),
    "psum_bytes": Column(LONG, "bytes", "partial-sum RAM, all together; 0 is none"),
    "bus_bits": Column(INT, "bits", "width of a beat of the memory channel"),
    "clock_mhz": Column(REAL, "MHz", "core clock"),
    "feasible": Column(TRUTH, "", "fits the board, maps every layer and keeps to the constraints"),
    "reason": Column(TEXT, "", "why not: what is exceeded and by how much, or which layer cannot be mapped", True),
    "limiting": Column(TEXT, "", "the same in a word: a resource, external_memory, min_fps, max_mb_s, tiling or unsupported", True),
    "miss": Column(REAL, "", "by how much it misses, in relation to what is allowed (0.25: a quarter too much); where no tile fits, in "
                             "block RAMs, in relation to those of the design", True),
    "cycles": Column(LONG, "cycles", "whole workload, layer after layer, each as often as the network has it", True),
    "seconds": Column(REAL, "s", "cycles at the core clock", True),
    "fps": Column(REAL, "1/s", "complete runs of the workload a second", True),
    "bytes_read": Column(LONG, "bytes", "read from external memory, programs included", True),
    "bytes_written": Column(LONG, "bytes", "written to external memory", True),
    "external_bytes": Column(LONG, "bytes", "both", True),
    "external_mb_s": Column(REAL, "1e6 bytes/s", "external bytes by seconds: the average over the run", True),
    "kept_tensors": Column(INT, "", "tensors that stay on chip", True),
    "saved_cycles": Column(LONG, "cycles", "what that saves against the layers one by one; negative where saved bytes cost some", True),
    "saved_bytes": Column(LONG, "bytes", "the same in external bytes", True),
    "macs": Column(LONG, "MACs", "multiply-accumulates of the workload, padded taps included; 1 MAC is 2 ops", True),
    "utilization": Column(REAL, "", "macs / (cycles * rows * cols * lanes)", True),
    "luts": Column(INT, "LUTs", "used; an estimate"),
    "ffs": Column(INT, "FFs", "used; an estimate"),
    "dsps": Column(INT, "blocks", "DSP blocks used; exact"),
    "block_rams": Column(INT, "blocks", "block RAM used, of 18 Kb (iCE40: 4 Kb); exact"),
    "luts_available": Column(INT, "LUTs", "under the ceiling"),
    "ffs_available": Column(INT, "FFs", "under the ceiling"),
    "dsps_available": Column(INT, "blocks", "under the ceiling"),
    "block_rams_available": Column(INT, "blocks", "under the ceiling"),
    "compute_bound_cycles": Column(LONG, "cycles", "that the array alone needs: operand vectors issued", True),
    "memory_bound_cycles": Column(LONG, "cycles", "that the external memory alone needs", True),
    "drain_bound_cycles": Column(LONG, "cycles", "that the drains alone need", True),
    "bound": Column(TEXT, "", "the largest of these three: compute, memory or drain", True),
}
SCHEMA = pa.schema([pa.field(name, column.type, column.nullable) for name, column in COLUMNS.items()])
