"""The generated tables of boards.md; `docs/make_tables.py` writes them."""

from __future__ import annotations

from collections.abc import Iterable

from boards import list_boards, list_devices, list_machines, load_board, load_device, load_machine
from boards.clocks import BLOCK_RAM_MHZ, DEFAULTS_MHZ
from boards.figures import Figure
from boards.primitives import DSPS, FAMILIES, RAMS, Family

MARKS = {"read": "", "computed": "", "unverified": "?", "assumption": "*"}


def _table(heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _marked(figure: Figure | None) -> str:
    return "" if figure is None or not figure.value else f"{figure.value:,g}{MARKS[figure.trust]}"


def families() -> str:
    rows = []
    for family, facts in FAMILIES.items():
        dsp, ram, spread = DSPS[facts.dsp], RAMS[facts.block_ram], facts.distributed_ram
        accumulator = f", {dsp.accumulator_bits}-bit accumulator" if dsp.accumulator_bits else ""
        half = f", two {ram.half}" if ram.half else ""
        rams = [f"{facts.block_ram}: {ram.bits // 1024} Kb, {ram.port_bits} bits a port{half}"]
        if facts.large_ram:
            large = RAMS[facts.large_ram]
            rams.append(f"{facts.large_ram}: {large.bits // 1024} Kb, {large.port_bits} bits" + (", one port" if large.ports == 1 else ""))
        rows.append((f"`{family}`", facts.title, facts.lut_inputs, f"{facts.dsp}: {dsp.a_bits} x {dsp.b_bits}{accumulator}",
                     "; ".join(rams), f"{spread.kind}: {spread.depth} x {spread.width_bits} in {spread.luts} LUTs" if spread else "none"))
    return _table(("family", "", "LUT inputs", "multiplier", "block RAM", "RAM in LUTs"), rows)


def devices() -> str:
    order = list(FAMILIES)
    found = sorted((load_device(name) for name in list_devices()), key=lambda device: order.index(device.family))
    return _table(("device", "", "LUTs", "FFs", "DSPs", "block RAMs", "large RAMs", "LUTs with carry", "LUTs that can be RAM"), (
        (f"`{device.name}`", device.title, _marked(device.luts), _marked(device.ffs), _marked(device.dsps), _marked(device.block_rams),
         _marked(device.large_rams), f"{device.carry_luts:,}{MARKS[device.carry_lut_share.trust]}",
         f"{device.ram_luts:,}{MARKS[device.ram_lut_share.trust]}") for device in found))


def boards() -> str:
    rows = []
    for board in sorted((load_board(name) for name in list_boards()), key=lambda board: list(FAMILIES).index(board.device.family)):
        memory = board.memory
        cells = ("none", "", "", "") if memory is None else (
            str(memory.kind), _marked(memory.width_bits), _marked(memory.mt_s), f"{board.offered_mb_s:,.6g}")
        rows.append((f"`{board.name}`", board.title, f"`{board.device.name}`", board.speed_grade or "", f"{board.clock_mhz.value:g}",
                     *cells, "yes" if board.amaranth else ""))
    return _table(("board", "", "device", "grade", "clock MHz", "memory", "bits", "MT/s", "offered MB/s", "pins"), rows)


def clocks() -> str:
    rows = []
    for family, grades in DEFAULTS_MHZ.items():
        for grade, mhz in grades.items():
            limit = BLOCK_RAM_MHZ.get(Family(family), {}).get(grade)
            rows.append((f"`{family}`", grade, f"{mhz:g}", f"{limit:g}?" if limit else "", f"{100 * mhz / limit:.0f} %" if limit else ""))
    return _table(("family", "grade", "default MHz", "block RAM's limit, MHz", "of it"), rows)


def machines() -> str:
    return _table(("machine", "", "devices", "precision", "Gop/s of all", "memory GB/s of all", "op/byte at the ridge"), (
        (f"`{found.name}`", found.title, found.devices.value, precision, f"{found.total_gops(precision):,g}{MARKS[figure.trust]}",
         f"{found.total_memory_mb_s / 1000:,g}{MARKS[found.memory_mb_s.trust]}", f"{found.ridge_ops_per_byte(precision):.3g}")
        for found in map(load_machine, list_machines()) for precision, figure in found.peak_gops.items()))


PARTS = {"families": families, "devices": devices, "boards": boards, "default clocks": clocks, "machines": machines}
