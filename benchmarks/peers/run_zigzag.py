"""ZigZag: the best of its loop orders (loma, six loop factors, as in its examples) on its 32x32 `tpu_like`, for latency."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import zigzag
from driver import Stopwatch, read_layers
from zigzag.api import get_hardware_performance_zigzag
from zigzag.stages.evaluation.cost_model_evaluation import CostModelStage

layers = read_layers()
inputs = Path(zigzag.__file__).parent / "inputs"
evaluations = 0
plain_run = CostModelStage.run


def counted_run(stage: Any) -> Any:
    global evaluations
    evaluations += 1
    return plain_run(stage)


def workload() -> list[dict[str, Any]]:
    """Each layer on its own: no layer's output is another's input."""
    entries = []
    for number, layer in enumerate(layers):
        rows = (layer["O"] - 1) * layer["S"] + layer["F"]
        used = min(layer["O"] * layer["S"], rows - layer["P"])
        below = rows - layer["P"] - used
        entries.append({
            "id": number, "name": f"conv{number}", "operator_type": "Conv", "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
            "dimension_relations": [f"ix={layer['S']}*ox+1*fx", f"iy={layer['S']}*oy+1*fy"],
            "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
            "loop_sizes": [1, layer["K"], layer["C"], layer["O"], layer["O"], layer["F"], layer["F"]],
            "pr_loop_dims": ["IX", "IY"], "pr_loop_sizes": [used, used], "padding": [[layer["P"], below]] * 2,
            "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8}, "operand_source": {"I": number, "W": number}})
    return entries


CostModelStage.run = counted_run
logging.disable(logging.INFO)
watch = Stopwatch()
_, cycles, _ = get_hardware_performance_zigzag(
    workload(), str(inputs / "hardware" / "tpu_like.yaml"), str(inputs / "mapping" / "tpu_like.yaml"), opt="latency", lpf_limit=6,
    dump_folder="zigzag", loma_show_progress_bar=False)
watch.report(package="zigzag-dse", point="tpu_like 32x32, loma 6", points=1, cycles=cycles, mappings=evaluations)
