"""nearmac: every design point with the best mapping of every layer, banks as SCALE-Sim's here, memory of 64 bits a cycle as ZigZag's."""

from __future__ import annotations

from driver import Layers, Stopwatch, read_layers

from dse.schedule.search import best_tiling
from hdl.design import Design
from hdl.layer import Layer
from sim.memory import MemoryTiming

ARRAYS = (32,)


def nearmac_points(layers: Layers) -> tuple[int, int, int]:
    """(design points, mappings compared, cycles of the workload on the last point). The one place to change for another explorer."""
    distinct = [Layer.conv(K=layer["K"], C=layer["C"], OY=layer["O"], OX=layer["O"], FY=layer["F"], FX=layer["F"], S=layer["S"],
                           P=layer["P"]) for layer in layers]
    mappings = cycles = 0
    for size in ARRAYS:
        design = Design(rows=size, cols=size, bus_bits=64, output_multiplier="dsp", input_bytes=1 << 16, weight_bytes=1 << 16,
                        output_bytes=1 << 16, psum_bytes=1 << 16)
        choices = {layer: best_tiling(design, layer, MemoryTiming(8, 1, 1)) for layer in dict.fromkeys(distinct)}
        mappings += sum(choice.candidates for choice in choices.values())
        cycles = sum(choices[layer].prediction.cycles for layer in distinct)
    return len(ARRAYS), mappings, cycles


workload = read_layers()
watch = Stopwatch()
points, mappings, cycles = nearmac_points(workload)
watch.report(package="nearmac", point=f"{', '.join(f'{size}x{size}x1' for size in ARRAYS)}, best mapping", points=points,
             cycles=cycles, mappings=mappings)
