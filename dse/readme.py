"""The README of an emission: ports, protocol, memory map, resources, and what a board still needs."""

from __future__ import annotations

from collections.abc import Sequence

from boards.primitives import FAMILIES
from dse.schedule.chain import ChainPrediction
from dse.schedule.compiler import Program
from dse.schedule.predict import Prediction
from dse.schedule.tiling import TilePlan
from hdl.accelerator import COUNTER_BITS
from hdl.design import Design
from hdl.family import block_ram
from hdl.pins import ConstraintFile
from hdl.program import EXTERNAL_ADDRESS_BITS, LENGTH_BITS
from hdl.ram import RamShape
from hdl.synthesis import flow
from hdl.timing import MIN_MEMORY_LATENCY_CYCLES
from hdl.verilog import TOP, version
from sim.memory import QUEUE_BURSTS, MemoryTiming

COUNTERS = {
    "total": "cycles with `busy`",
    "issue": "cycles that issued an operand vector",
    "memory": "cycles with memory work left, inside phases",
    "drain_stall": "cycles in which the array waited for the drains",
    "beats_read": "beats taken from `read_data`",
    "beats_written": "beats given to `write_data`",
}


def readme_text(plans: Sequence[TilePlan], programs: Sequence[Program], prediction: Prediction | ChainPrediction, timing: MemoryTiming,
                board: str | None, workload_file: str, pins: ConstraintFile | None = None) -> str:
    """Markdown; nothing in it depends on when or where it was written. Several plans are a chain; ``workload_file`` has the layers;
    ``pins`` is the board's constraint file."""
    design = plans[0].design
    layers = [f"`{plan.layer}`, in tiles of `{plan.tiling}`" for plan in plans]
    runs = "one layer" if len(plans) == 1 else f"{len(plans)} layers from one start"
    listed = f"The layer is {layers[0]}." if len(plans) == 1 else "\n".join([
        "The tensors between the layers stay on chip, in the input banks. The layers are", "",
        *(f"{number}. {text}" for number, text in enumerate(layers, start=1))])
    return "\n\n".join([
        f"# {TOP}: {design.precision}, {design.array}",
        f"Verilog of one accelerator (`design.yaml`) and a test bench that runs {runs} (`{workload_file}`) on it, "
        f"written by nearmac {version()}" + (f" for the board {board}." if board else "."),
        listed,
        _files(workload_file, pins),
        _simulation(prediction, timing),
        _ports(design),
        _protocol(design),
        _memory_map(programs, design),
        _resources(design),
        _board(design, timing, pins),
    ]) + "\n"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _files(workload_file: str, pins: ConstraintFile | None) -> str:
    workload = "layer" if workload_file == "layer.yaml" else "layers"
    return "## Files\n\n" + _table(("file", "what"), [
        ("accelerator.v", f"the accelerator, Verilog-2005, top module `{TOP}`: what goes into a board project"),
        ("testbench.v, main.cpp", "the self-checking test bench; main.cpp makes its clock under Verilator"),
        ("image.hex", "external memory before the run: program, parameters, weights, input (random ones); a beat a line"),
        ("expected.hex", "the output region after the run, computed by an independent integer model"),
        (f"design.yaml, {workload_file}", f"design and {workload}, as nearmac reads them back"),
        ("run.sh", "the commands that simulate"),
        *([(pins.name, f"constraints of the board's pins: {', '.join(pins.resources)}")] if pins else []),
    ])


def _simulation(prediction: Prediction | ChainPrediction, timing: MemoryTiming) -> str:
    return f"""## Simulation

    ./run.sh icarus
    ./run.sh verilator

Each prints one line, `PASS ...` or `FAIL ...` with the reason, and its exit status is 0 for PASS alone. The test bench wants
every bit of the output region, and

* {prediction.cycles} cycles, from the cycle that takes `start` to that of the last written beat, both counted;
* {prediction.beats_read} beats read and {prediction.beats_written} written;
* {prediction.issue_cycles} cycles that issue an operand vector.

Its memory answers {timing.latency_cycles} cycles after a request and then moves {timing.num}/{timing.den} beats a cycle;
with another memory cycles differ, bits do not. In short, for tools in the PATH:

    iverilog -g2005 -s testbench -o testbench.vvp accelerator.v testbench.v && vvp -n testbench.vvp
    verilator --cc --exe --build -Wno-lint -Wno-style --top-module testbench --prefix Vtestbench \\
        main.cpp accelerator.v testbench.v && obj_dir/Vtestbench

`verilator --lint-only -Wall` is silent on accelerator.v but for the style of the emitter: `-Wno-WIDTHEXPAND -Wno-WIDTHTRUNC
-Wno-CASEINCOMPLETE -Wno-UNUSEDSIGNAL -Wno-PROCASSINIT -Wno-DECLFILENAME`."""


def _ports(design: Design) -> str:
    bus, address, length = design.bus_bits, EXTERNAL_ADDRESS_BITS, LENGTH_BITS
    rows: list[tuple[object, ...]] = [
        ("clk", "in", 1, f"the one clock, designed for {design.clock_mhz:g} MHz"),
        ("rst", "in", 1, "synchronous reset, active high"),
        ("start", "in", 1, "taken in a cycle in which `busy` is 0"),
        ("program_address", "in", address, "first beat of the program; holds while `busy`"),
        ("program_beats", "in", length, "beats of the program; holds while `busy`"),
        ("busy", "out", 1, "a program is running"),
        ("done", "out", 1, "high for one cycle at the end"),
        ("error", "out", 1, "with `done`: the program is of another version of the hardware, and nothing was run"),
        ("issuing", "out", 1, "an operand vector enters the array in this cycle"),
        ("request__payload", "out", address + length + 1,
         f"[{address - 1}:0] address of the first beat, in beats; [{address + length - 1}:{address}] beats, at least 1; "
         f"[{address + length}] 1 to write, 0 to read"),
        ("request__valid, request__ready", "out, in", 1, "a burst is requested where both are 1"),
        ("write_data__payload", "out", bus, "a beat to write"),
        ("write_data__valid, write_data__ready", "out, in", 1, "the beat moves where both are 1"),
        ("read_data__payload", "in", bus, "a beat that was read"),
        ("read_data__valid, read_data__ready", "in, out", 1, "the beat moves where both are 1; ready is always 1"),
    ]
    if design.counters:
        rows += [(f"counters__{name}", "out", COUNTER_BITS, f"{what}; cleared by `start`") for name, what in COUNTERS.items()]
    return "## Ports\n\n" + _table(("port", "direction", "bits", "meaning"), rows)


def _protocol(design: Design) -> str:
    bus_bytes = design.bus_bits // 8
    return f"""## Memory channel

A beat is {design.bus_bits} bits. Beat a is the {bus_bytes} bytes of external memory from {bus_bytes}a on, the first one in
the lowest bits.

* Bursts are served in the order of their requests, reads and writes alike; beat i of a burst is at its address + i.
* A `valid` stays until its `ready`, and its payload does not change. `ready` may come before `valid` or after it.
* The memory may pause anywhere, and for as long as it likes. Read data is always taken.
* No program reads a beat that it wrote; a later program may, so writes must have arrived before the next `start`.
* The predicted cycles are those of a memory that queues {QUEUE_BURSTS} bursts, that sends the first beat no sooner than
  {MIN_MEMORY_LATENCY_CYCLES} cycles after the request that found it idle, and that does not pause between queued bursts."""


def _memory_map(programs: Sequence[Program], design: Design) -> str:
    bus_bytes, first = design.bus_bits // 8, programs[0]
    contents = {
        "program": "32-bit words, a fraction of a beat or several, the low part first",
        "parameters": "bias, multiplier, shift of each output channel (1-bit outputs: threshold, flip), in load order",
        "weights": "in load order",
        "input": "pixel after pixel, rows before columns; channels in words; what channels do not use holds the zero point",
        "output": "as the input; written by the accelerator",
    }
    rows, chained = [], len(programs) > 1
    for number, program in enumerate(programs, start=1):
        for name, what in contents.items():
            region = getattr(program.memory, name)
            if region.beats or not chained:  # what stays on chip has no place here
                rows.append((f"{name} of layer {number}" if chained else name, region.address, region.beats, region.address * bus_bytes,
                             region.beats * bus_bytes, what))
    what = "layers" if chained else "layer"
    following = " Each program names the next one: only the first is given to the accelerator." if chained else ""
    return f"""## Memory map

{_table(("region", "first beat", "beats", "first byte", "bytes", "contents"), rows)}

To run the {what}: write everything before the output to external memory as image.hex has it, set `program_address` to
{first.memory.program.address} and `program_beats` to {first.beats}, raise `start` until `busy` is 1, and wait for `done`. For other
inputs only the input region changes; a further run needs nothing else. Addresses are part of the program: to move the
regions, add a constant to every request's address outside of the accelerator. Bits beyond an output pixel's channels are
zero.{following}"""


def _resources(design: Design) -> str:
    rows: list[tuple[object, ...]] = []
    for kind in design.bank_kinds:
        shape: RamShape = design.bank_shape(kind)
        rows.append((kind, design.bank_count(kind), shape.depth, sum(shape.slice_bits), design.bank_rams(kind)))
    rows.append(("all", "", "", "", design.block_rams))
    ram_kbit = block_ram(design.family).bits / 1024
    distributed = f" Distributed RAM: {design.distributed_rams} cells." if design.distributed_rams else ""
    return f"""## Resources, by design

{_table(("bank", "number", "entries", "bits", f"{ram_kbit:g}-Kb block RAMs"), rows)}

DSP blocks: {design.dsps}, {design.array_dsps} in the array and {design.dsps - design.array_dsps} in the output stage.{distributed}

These are blocks of {FAMILIES[design.family].title} as Yosys uses them; other families have other blocks. Look-up tables are not counted
here; synthesis counts them:

    yosys -p "read_verilog accelerator.v; {'; '.join(flow(design.family, TOP))}; stat"
"""


def _board(design: Design, timing: MemoryTiming, pins: ConstraintFile | None) -> str:
    given = f"""; those of {', '.join(pins.resources)} are in `{pins.name}`,
  with ports as Amaranth names them. The oscillator has {pins.clock_mhz:g} MHz""" if pins else ""
    return f"""## What a board still needs

* A memory controller with the channel above: {design.bus_bits} bits, {timing.num}/{timing.den} beats a cycle.
  Vendors' controllers have command and data queues that map onto it; bursts longer than theirs must be cut.
* A host link (UART, USB, SPI, a soft processor) that fills external memory, raises `start` and reads the output. It
  shares the controller.
* A clock of {design.clock_mhz:g} MHz, a reset that is synchronous to it, pin and timing constraints{given}.

The vendor's tools were **not** run, so whether the clock is met after place and route is not known. Writing these files
ran no simulator and no synthesis; `run.sh` runs a simulator."""
