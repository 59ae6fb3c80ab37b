"""ChipLeap: its exploration as `chipleap explore` runs it (2,000 samples and the greedy agent), on the platform without a SoC."""

from __future__ import annotations

from chipleap.explore.engine import explore
from chipleap.hw.design import Accel, Design
from chipleap.model.evaluate import evaluate
from chipleap.spec import parse_spec
from driver import Stopwatch, read_layers

# A convolution's output is its input over the stride, rounded up; padding is implied.
operators = [{"conv2d": {"name": f"conv{number}", "h": layer["O"] * layer["S"], "w": layer["O"] * layer["S"], "cin": layer["C"],
                         "cout": layer["K"], "kh": layer["F"], "kw": layer["F"], "stride": layer["S"]}}
             for number, layer in enumerate(read_layers())]

spec = parse_spec({"name": "peers", "platform": "standalone", "objective": "throughput",
                   "workload": {"graph": {"name": "peers", "weights": "int8", "ops": operators}}})
accelerator = Accel(dataflow="os", rows=32, cols=32, ports=4, abuf_kib=64, wbuf_kib=64)
# A technology, a memory and interleaved banks that keep up with the accelerator's four ports.
design = Design(tech="generic-28nm", freq_mhz=200.0, bus="NtoM", il_banks=8, il_bank_kib=64, ext_mem="lpddr5-x16", accel=accelerator,
                platform="standalone")
on_array = [op for op in evaluate(spec.workload(), design).ops if op.unit == "accel"]

watch = Stopwatch()
result = explore(spec)
watch.report(package="chipleap", point="its sampled space; cycles: os 32x32, 4 ports, without the host's part", points=result.evaluated,
             cycles=sum(op.time_s for op in on_array) * design.freq_mhz * 1e6)
