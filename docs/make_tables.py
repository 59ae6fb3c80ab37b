"""Writes the generated parts of the pages in docs/, from the code itself: `python docs/make_tables.py`, from the repository's root.

A part stands between ``<!-- generated: NAME -->`` (or ``<!-- file: PATH -->``) and ``<!-- end -->``. ``tests/test_docs.py`` holds
every one against the code.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import board_tables  # noqa: E402
import footprint_tables  # noqa: E402

from dse.schedule.compiler import Program, compile_program  # noqa: E402
from dse.schedule.predict import predict, tile_costs  # noqa: E402
from dse.schedule.tiling import TilePlan, Tiling  # noqa: E402
from hdl import timing as hardware  # noqa: E402
from hdl.array import capture_cycles, readout_cycles  # noqa: E402
from hdl.design import PROGRAM_DEPTH, Design  # noqa: E402
from hdl.drain import drain_cycles, drain_interval, output_unit, tail_cycles  # noqa: E402
from hdl.layer import Layer  # noqa: E402
from hdl.program import IMMEDIATE_BITS, Mode, Opcode, Stage, fields  # noqa: E402
from sim.memory import MemoryTiming  # noqa: E402

EXAMPLE_DESIGN = Design(rows=4, cols=4, accumulator_bits=24)
EXAMPLE_LAYER = Layer.conv(K=4, C=4, OY=4, OX=4, FY=3, FX=3, P=1)
EXAMPLE_TILING = Tiling(ts=1, tk=4, tc=1, ty=2, tx=4)
EXAMPLE_TIMING = MemoryTiming(12, 14, 25)

FIELDS = {
    "signed": "activations are two's complement",
    "zero_point": "subtracted from every activation before the multiplier",
    "low": "lower clamp of the outputs", "high": "upper clamp of the outputs", "output_zero_point": "added before the clamp",
    "fy_last": "FY - 1", "fx_last": "FX - 1",
    "stride_y": "grid rows from one output row to the next", "stride_x": "grid columns from one output to the next",
    "dilation_y": "grid rows from one tap to the next", "dilation_x": "grid columns from one tap to the next",
    "tap_y_words": "input bank words from one tap row to the next", "tap_x_words": "the same for tap columns",
    "pixel_y_words": "input bank words from one output row to the next", "pixel_x_words": "the same for output columns",
    "group_words": "input words of a supergroup",
    "row_entries": "input bank entries of a grid row", "pixel_entries": "input bank entries of a pixel",
    "input_row_beats": "external beats from one loaded grid row to the next", "input_pixel_beats": "the same for grid columns",
    "output_row_beats": "external beats from one output row to the next", "output_pixel_beats": "the same for output columns",
    "row_pattern": "rows that the first weight run of a block goes to, a bit a row",
    "row_slots": "for each row, the group (within its pass) that it works on",
    "column_slots": "for each column, the group that its element belongs to",
    "slots_per_pass": "groups by which a pass moves on", "passes_last": "passes - 1",
    "next_program_address": "first beat of the program that follows",
    "next_program_beats": "its beats (0: none follows)", "store_on_chip": "stores go to the input banks",
    "next_span_last": "grid rows of the next layer's input in a lane - 1",
    "next_band_rows": "grid rows from one lane's to the next one's", "next_band_entries": "the same in bank entries",
    "load_input": "the tile loads input", "load_weights": "the tile loads weights", "load_parameters": "the tile loads parameters",
    "input_address": "first beat of the tile's input", "weight_address": "first beat of its weights",
    "parameter_address": "first beat of its parameters",
    "weight_beats": "beats of its weights, one burst", "parameter_beats": "beats of its parameters, one burst",
    "input_rows_last": "grid rows to load - 1", "input_bursts_last": "bursts of a row - 1 (0: the row is one burst)",
    "input_beats": "beats of a burst", "input_pixels_last": "grid columns to load - 1", "input_entries_last": "entries of a pixel - 1",
    "input_entry": "where lane 0 puts the first row", "input_row_first": "grid row, relative to lane 0's frame, of the first row",
    "input_span_last": "grid rows of a lane's band - 1", "load_band_rows": "grid rows from one lane's band to the next",
    "load_band_entries": "the same in bank entries",
    "weight_entry": "where the weights go", "run_entries_last": "entries of a weight run - 1", "records_last": "runs of a supergroup - 1",
    "parameter_entry": "where the parameters go",
    "input_word": "word of the tile's first tap", "weight_word": "first word of its weights", "parameter_word": "its first parameters",
    "words_last": "words of a tap - 1", "run_words": "weight words from one block to the next",
    "blocks_last": "array blocks of a supergroup and pass - 1", "groups_last": "supergroups - 1",
    "rows_final": "channels of the last block", "x_last": "output columns - 1", "y_last": "output rows of a lane's band - 1",
    "x_low": "first real grid column", "x_high": "end of the real grid columns",
    "y_low": "first real grid row", "y_high": "end of the real grid rows",
    "band_rows": "grid rows from one lane's band to the next", "tile_rows": "output rows of the tile",
    "first_channels": "first channel tile: begin with the bias", "final_channels": "last channel tile: go to the output stage",
    "output_entry": "where the output beats go", "final_word_channels": "channels in the last word of a tap",
    "store_output": "the tile stores output", "output_address": "first beat of its output",
    "output_rows_last": "output rows - 1", "output_bursts_last": "bursts of a row - 1 (0: the row is one burst)",
    "output_beats": "beats of a burst", "output_row_length": "beats of a row - 1",
    "store_band_last": "output rows of a lane's band - 1", "store_entry": "where the output beats are",
    "next_row_first": "grid row of the next layer, relative to lane 0's frame, of the first row",
}

STAGES = {
    Stage.CONFIG: "Constant over the program.", Stage.LOAD: "Used in the phase that loads the tile, right after its evaluation.",
    Stage.COMPUTE: "Used one phase later.", Stage.STORE: "Used two phases later.",
}

OPCODES = {
    Opcode.LOAD: "acc = operand", Opcode.ADD: "acc += operand", Opcode.XOR: "acc ^= operand",
    Opcode.STEP: "one level of the odometer: acc counts down, the operand reloads it", Opcode.STORE: "operand = acc",
    Opcode.IMMEDIATE: f"acc = the low {IMMEDIATE_BITS} bits of the instruction, sign-extended",
    Opcode.ENTRY: "the tile routine begins with the next instruction", Opcode.END: "the tile's fields are complete",
}

MODES = {
    Mode.DIRECT: ("0", "1"), Mode.CLASS: ("{last, first} of `level`", "4"),
    Mode.PAIR: ("{last, first} of `level`, then of `level_b`", "16"),
    Mode.LEVEL: ("the outermost level that advanced, 7 for the first tile", "8"),
}

DRAIN_DESIGNS = (
    ("4x4x1, tree, serial", EXAMPLE_DESIGN), ("4x4x1, tree, dsp", EXAMPLE_DESIGN.with_(output_multiplier="dsp")),
    ("4x4x1, per_column, serial", EXAMPLE_DESIGN.with_(accumulate="per_column")),
    ("4x4x2, tree, serial, 2 drains", EXAMPLE_DESIGN.with_(lanes=2, drains=2)),
    ("8x32x1, w1a1", Design(rows=8, cols=32, weight_bits=1, activation_bits=1, multiplier="lut", accumulator_bits=16)),
)


# -- the parts --------------------------------------------------------------------------------------------------------


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def field_table() -> str:
    """Every field of every design, by stage; widths for the example design and for a wider one with every option."""
    wide = Design(rows=8, cols=8, lanes=2, drains=2, psum_bytes=16384, accumulator_bits=24)
    xnor = DRAIN_DESIGNS[-1][1].with_(lanes=2, drains=2, psum_bytes=16384)
    chaining = wide.with_(chaining=True)
    columns = [fields(EXAMPLE_DESIGN), fields(wide), fields(chaining), fields(xnor)]
    sections = []
    for stage, when in STAGES.items():
        rows = []
        for name, meaning in FIELDS.items():
            stages = {column[name].stage for column in columns if name in column}
            if stage in stages:
                rows.append((f"`{name}`", *(column[name].bits if name in column else "-" for column in columns), meaning))
        heads = ("field", f"{EXAMPLE_DESIGN.array}", f"{wide.array}", f"{chaining.array} chaining", f"{xnor.array} w1a1",
                 "meaning")
        sections.append(f"**{stage.name}.** {when}\n\n" + table(heads, rows))
    return "\n\n".join(sections)


def opcode_table() -> str:
    return table(("opcode", "number", "effect"), [(f"`{code.name}`", int(code), text) for code, text in OPCODES.items()]) + "\n\n" + table(
        ("mode", "number", "OR-ed into the address", "words in the table"),
        [(f"`{mode.name}`", int(mode), *text) for mode, text in MODES.items()])


def constants() -> dict[str, tuple[int, str]]:
    """Name -> (value, docstring) of hdl/timing.py, in its order."""
    body = ast.parse(Path(hardware.__file__).read_text(encoding="utf-8")).body
    found = {}
    for node, after in zip(body, body[1:], strict=False):
        if isinstance(node, ast.Assign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            name = ast.unparse(node.targets[0])
            found[name] = (getattr(hardware, name), " ".join(str(after.value.value).split()))
    return found


def constant_table() -> str:
    return table(("constant", "cycles", "what it is"), [(f"`{name}`", value, text) for name, (value, text) in constants().items()])


def drain_table() -> str:
    rows = [(name, drain_interval(design), drain_cycles(design), capture_cycles(design), readout_cycles(design),
             output_unit(design).latency_cycles, tail_cycles(design)) for name, design in DRAIN_DESIGNS]
    return table(("design", "II", "drain", "capture", "readout", "output stage", "tail"), rows)


def example() -> tuple[TilePlan, Program]:
    plan = TilePlan(EXAMPLE_DESIGN, EXAMPLE_LAYER, EXAMPLE_TILING)
    return plan, compile_program(plan)


def worked_example() -> str:
    """The example's cycles by the rules of this page, step by step; the test holds them against prediction and simulation."""
    plan, program = example()
    timing, design, costs = EXAMPLE_TIMING, plan.design, tile_costs(plan)
    latency, num, den = timing.latency_cycles, timing.num, timing.den
    vectors, drain, tail = plan.vectors(plan.loops["C"][0]), drain_cycles(design), tail_cycles(design)
    groups = plan.y_windows[0].band * plan.loops["X"][0].size
    evaluate = hardware.EVALUATION_CYCLES + hardware.INSTRUCTION_CYCLES * program.tile_instructions
    fetch = hardware.MEMORY_START_CYCLES + latency + ceil(program.beats * den / num)
    first = hardware.FIRST_EVALUATION_CYCLES + hardware.INSTRUCTION_CYCLES * program.first_instructions
    before = fetch + hardware.FETCH_END_CYCLES + first + hardware.PHASE_CHANGE_CYCLES
    start = hardware.COMPUTE_START_CYCLES + design.lanes - 1
    tiles = len(costs.load_beats)
    load, store = costs.load_beats.tolist(), costs.store_beats.tolist()
    rows, total = [], before
    for phase in range(tiles + 2):
        loads = load[phase] if phase < tiles else 0
        stores = store[phase - 2] if phase >= 2 else 0
        beats = loads + stores
        memory = hardware.MEMORY_START_CYCLES + latency + ceil(beats * den / num) + hardware.MEMORY_END_CYCLES if beats else 0
        compute = start + (groups - 1) * max(vectors, drain) + vectors - 1 + tail + 1 if 1 <= phase <= tiles else 0
        evaluation = evaluate if phase < tiles else 0
        length = max(memory, compute, evaluation) + hardware.PHASE_CHANGE_CYCLES
        if phase == tiles + 1:  # the last phase ends with its last beat, counted
            length = hardware.MEMORY_START_CYCLES + latency + ceil(beats * den / num) + 1
        total += length
        rows.append((phase, stores, loads, memory, compute, evaluation, length))
    lines = [
        f"Design {design.array} {design.precision}, bus {design.bus_bits} bits; layer `{plan.layer}`; tiles `{plan.tiling}`; memory of "
        f"latency {latency} and {num}/{den} beats a cycle. The program has {len(program.words)} words, {program.beats} beats; "
        f"{program.first_instructions} instructions run before the first phase, {program.tile_instructions} for every further tile.",
        f"* fetch: {hardware.MEMORY_START_CYCLES} + {latency} + ceil({program.beats} * {den}/{num}) = {fetch}",
        f"* first evaluation: {hardware.FIRST_EVALUATION_CYCLES} + {hardware.INSTRUCTION_CYCLES} * {program.first_instructions} = {first}",
        f"* before the first phase: {fetch} + {hardware.FETCH_END_CYCLES} + {first} + {hardware.PHASE_CHANGE_CYCLES} = {before}",
        f"* a tile: n = {groups} pixel groups, L = {vectors} vectors, drain = {drain}, tail = {tail}: {start} + {groups - 1} * "
        f"max({vectors}, {drain}) + {vectors} - 1 + {tail} + 1 = {start + (groups - 1) * max(vectors, drain) + vectors + tail} cycles",
        f"* evaluation of a further tile: {hardware.EVALUATION_CYCLES} + {hardware.INSTRUCTION_CYCLES} * {program.tile_instructions} = "
        f"{evaluate}"]
    phases = table(("phase", "beats stored", "beats loaded", "memory", "compute", "evaluation", "length"), rows)
    return "\n".join(lines[:1] + [""] + lines[1:]) + f"\n\n{phases}\n\nSum: **{total} cycles**."


def example_cycles() -> int:
    """Of the worked example, by prediction."""
    plan, program = example()
    return predict(plan, program, EXAMPLE_TIMING).cycles


def disassembly() -> str:
    """The example's program as text; the constants between the first and the last of them are left out."""
    _, program = example()
    names = {}
    for field in fields(EXAMPLE_DESIGN).values():
        for chunk in range(-(-field.bits // 32)):
            names[field.index + chunk + 1] = field.name + (f"[{chunk}]" if chunk else "")
    lines, data_from = [], None
    entry = next(at for at, word in enumerate(program.words[1:], 1) if word >> 27 == Opcode.ENTRY)
    for at, word in enumerate(program.words):
        if at == 0:
            text = f"header, version {word & 0xFFFF}"
        elif data_from is not None:
            text = f"data {word - (word >> 31 << 32)}"
        else:
            text = _instruction(word, names)
            if word >> 27 == Opcode.END:
                data_from = at
        lines.append(f"{at:3}  {word:08x}  {text}".rstrip())
    last = data_from or 0
    left_out = entry - 6
    return "\n".join(["```text", *lines[:4], f"     ... {left_out} more constants", *lines[entry - 2:last + 1],
                      f"     ... {len(lines) - last - 1} words of data", "```"])


def _instruction(word: int, names: dict[int, str]) -> str:
    opcode, field = Opcode(word >> 27 & 7), word >> 20 & 127
    target = f" -> {names[field]}" if field else ""
    if opcode is Opcode.IMMEDIATE:
        value = word & (1 << IMMEDIATE_BITS) - 1
        return f"IMMEDIATE {value - (value >> IMMEDIATE_BITS - 1 << IMMEDIATE_BITS)}{target}"
    if opcode in (Opcode.ENTRY, Opcode.END):
        return opcode.name
    mode, level = Mode(word >> 9 & 3), word >> 11 & 7
    address = str(word & PROGRAM_DEPTH - 1)
    where = {Mode.DIRECT: "", Mode.CLASS: f" | class of level {level}", Mode.PAIR: f" | classes of {level}, {word >> 14 & 7}",
             Mode.LEVEL: " | level"}[mode]
    counted = f" level {level}," if opcode is Opcode.STEP else ""
    return f"{opcode.name}{counted} [{address}{where}]{target}"


def memory_map() -> str:
    _, program = example()
    regions = program.memory
    rows = [(name, region.address, region.beats) for name in ("program", "parameters", "weights", "input", "output")
            for region in [getattr(regions, name)]]
    return table(("region", "first beat", "beats"), rows)


# -- the pages --------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[], str]] = {
    "fields": field_table, "opcodes": opcode_table, "disassembly": disassembly, "constants": constant_table, "drains": drain_table,
    "worked example": worked_example, "memory map": memory_map, **board_tables.PARTS, **footprint_tables.PARTS,
}
PART = re.compile(r"(<!-- (?P<kind>generated|file): (?P<name>[^\n]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def part(kind: str, name: str) -> str:
    if kind == "generated":
        return PARTS[name]()
    return f"```yaml\n{(ROOT / name).read_text(encoding='utf-8').rstrip()}\n```"


def filled(text: str) -> str:
    """A page with its parts as the code has them."""
    return PART.sub(lambda found: f"{found[1]}\n{part(found['kind'], found['name'])}\n\n{found[4]}", text)


if __name__ == "__main__":
    for page in sorted((ROOT / "docs").glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = filled(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page.relative_to(ROOT))
