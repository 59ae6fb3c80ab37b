"""SCALE-Sim: one run of its 32x32 array, weight stationary, without stalls (CALC) and without traces."""

from __future__ import annotations

import csv
from pathlib import Path

from driver import Stopwatch, read_layers
from scalesim.scale_sim import scalesim

CONFIG = """[general]
run_name = peers
[architecture_presets]
ArrayHeight = 32
ArrayWidth = 32
IfmapSramSzkB = 64
FilterSramSzkB = 64
OfmapSramSzkB = 64
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Dataflow = ws
Bandwidth = 10
ReadRequestBuffer = 32
WriteRequestBuffer = 32
[layout]
IfmapCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterCustomLayout = False
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = False
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
"""

Path("peers.cfg").write_text(CONFIG, encoding="utf-8")
# Every row ends with a comma. The input is padded beforehand, and no larger than its outputs need: SCALE-Sim rounds output sizes up.
rows = ["Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,"]
for number, layer in enumerate(read_layers()):
    size = (layer["O"] - 1) * layer["S"] + layer["F"]
    rows.append(f"conv{number}, {size}, {size}, {layer['F']}, {layer['F']}, {layer['C']}, {layer['K']}, {layer['S']},")
Path("layers.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
Path("layout.csv").write_text("Layer name,\n", encoding="utf-8")  # must be there, and a head is enough while layouts are off

watch = Stopwatch()
scalesim(save_disk_space=True, verbose=False, config="peers.cfg", topology="layers.csv", layout="layout.csv").run_scale(top_path="out")
with (Path("out") / "peers" / "COMPUTE_REPORT.csv").open(encoding="utf-8") as file:
    cycles = sum(float(line[2]) for line in list(csv.reader(file))[1:])  # column 1 has the first load as well
watch.report(package="scalesim", point="32x32 ws, CALC", points=1, cycles=cycles)
