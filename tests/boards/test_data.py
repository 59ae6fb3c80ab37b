"""The built-in devices, boards and machines against published tables, and every figure with its source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import boards
from boards import Figure, Machine, Trust, list_boards, list_devices, list_machines, load_board, load_device, load_machine
from boards.clocks import default_clock
from boards.figures import UNSTATED
from boards.primitives import FAMILIES
from boards.schema import Board, Device
from boards.strict_yaml import read_mapping
from boards.validation import validate

HERE = Path(boards.__file__).parent
# DS160 table 1: LUTs, flip-flops, DSPs, block RAMs, memory controllers; last, the sites of the die's grid (block RAM, DSP).
SPARTAN6 = {
    "4": (2400, 4800, 8, 12, 0, 32, 16),
    "9": (5720, 11440, 16, 32, 2, 32, 16),
    "16": (9112, 18224, 32, 32, 2, 32, 32),
    "25": (15032, 30064, 38, 52, 2, 60, 40),
    "45": (27288, 54576, 58, 116, 2, 128, 64),
    "75": (46648, 93296, 132, 172, 4, 192, 144),
    "100": (63288, 126576, 180, 268, 4, 288, 192),
    "150": (92152, 184304, 180, 268, 4, 288, 192),
}
SPARTAN6_NAMES = {f"xc6slx{size}" for size in SPARTAN6} | {f"xc6slx{size}t" for size in ("25", "45", "75", "100", "150")}
# Vendors' product tables: LUTs, flip-flops, DSPs, kilobits of block RAM, kilobits of large RAM, LUTs that can be RAM.
OTHERS = {
    "xc7a35t": (20800, 41600, 90, 1800, 0, 9600), "xc7a100t": (63400, 126800, 240, 4860, 0, 19000),
    "xc7z020": (53200, 106400, 220, 5040, 0, 17400), "xc7z045": (218600, 437200, 900, 19620, 0, 70400),
    "xc7k325t": (203800, 407600, 840, 16020, 0, 64000), "xc7vx485t": (303600, 607200, 2800, 37080, 0, 130800),
    "xczu3eg": (70560, 141120, 360, 7776, 0, 28800), "xczu9eg": (274080, 548160, 2520, 32832, 0, 144000),
    "xczu7ev": (230400, 460800, 1728, 11232, 27648, 101760), "xcvu9p": (1182240, 2364480, 6840, 77760, 276480, 591840),
    "xcu250": (1728000, 3456000, 12288, 96768, 368640, 791040),
    "lfe5u-12f": (12144, 12144, 28, 576, 0, 6072), "lfe5u-25f": (24288, 24288, 28, 1008, 0, 12144),
    "lfe5u-45f": (43848, 43848, 72, 1944, 0, 21924), "lfe5u-85f": (83640, 83640, 156, 3744, 0, 41820),
    "ice40up5k": (5280, 5280, 8, 120, 1024, 0), "ice40hx8k": (7680, 7680, 0, 128, 0, 0),
    "gw2a-18": (20736, 15552, 48, 828, 0, 2592),
}
# Peak MB/s as the LiteX targets clock the memories, or else as the board's maker states; 0 for none.
PEAK_MB_S = {"papilio-pro": 160, "mojo-v3": 62.5, "minispartan6-plus": 160, "minispartan6-plus-lx25": 160, "linsn-rv901t": 300,
             "pipistrello": 666.66, "atlys": 600, "sp605": 864, "pano-logic-g2": 0, "mimas": 0, "nexys-3": 160, "sp601": 1250,
             "mimas-v2": 666.66, "saturn": 666.66, "saturn-lx9": 666.66, "lx9-microboard": 800, "sk-xc6slx9": 50,
             "arty-a7-35": 1600, "arty-a7-100": 1600, "nexys4-ddr": 1300, "genesys-2": 3200, "kc705": 8000, "pynq-z1": 2100,
             "zedboard": 4264, "zc706": 4200, "vc707": 4000, "ultra96": 8528, "zcu102": 17064, "zcu104": 8000, "alveo-u200": 32000,
             "alveo-u250": 32000, "ulx3s-12f": 100, "ulx3s-25f": 100, "ulx3s-45f": 100, "ulx3s-85f": 100, "orangecrab-25f": 384,
             "orangecrab-85f": 384, "colorlight-i5": 240, "icebreaker": 96, "ice40-up5k-evn": 96, "ice40-hx8k-evn": 0,
             "tang-primer-20k": 384}
# Vendors' tables: peak Tera-ops of all devices together by precision, memory GB/s, operations a byte at the ridge.
MACHINES = {"mos-6502": ({"int8": 5e-7}, 0.001, 0.5), "gtx-1050-ti": ({"fp32": 2.1}, 112, 19), "gtx-1080-ti": ({"fp32": 11.3}, 484, 23),
            "titan-x-pascal": ({"fp32": 11.0, "int8": 44}, 480, 23), "p100-sxm2": ({"fp32": 10.6, "fp16": 21.2}, 732, 14.5),
            "p100-pcie": ({"fp32": 9.3, "fp16": 18.7}, 732, 12.7), "p100-pcie-12gb": ({"fp32": 9.3, "fp16": 18.7}, 549, 16.9),
            "dgx-1": ({"fp32": 85, "fp16": 170}, 5856, 14.5), "snowflake": ({"int16": 0.128}, 4.2, 30)}
EVERY = [load_device(n) for n in list_devices()] + [load_board(n) for n in list_boards()] + [load_machine(n) for n in list_machines()]


def figures(held: object) -> Iterator[tuple[str, Figure]]:
    items = held.items() if isinstance(held, dict) else ((field.name, getattr(held, field.name)) for field in fields(held))
    for name, value in items:
        if isinstance(value, Figure):
            yield name, value
        elif is_dataclass(value) or isinstance(value, dict):
            yield from ((f"{name}.{inner}", figure) for inner, figure in figures(value))


def test_all_devices_are_there():
    assert set(list_devices()) == SPARTAN6_NAMES | set(OTHERS)
    assert [name for name in list_devices() if name in SPARTAN6_NAMES][:3] == ["xc6slx4", "xc6slx9", "xc6slx16"]


@pytest.mark.parametrize("name", sorted(SPARTAN6_NAMES))
def test_spartan6_figures(name):
    device = load_device(name)
    size = name.removeprefix("xc6slx").rstrip("t")
    luts, ffs, dsps, block_rams, controllers, grid_rams, grid_dsps = SPARTAN6[size]
    assert device.name == name and device.family == "xc6s"
    assert device.capacity == {"luts": luts, "ffs": ffs, "dsps": dsps, "block_rams": block_rams, "large_rams": 0,
                               "carry_luts": luts // 2, "ram_luts": luts // 4}
    assert device.memory_controllers is not None and device.memory_controllers.value == controllers
    assert device.slices is not None and device.logic_cells is not None
    assert device.slices.value * 4 == luts and device.slices.value * 8 == ffs
    assert device.logic_cells.value == pytest.approx(6.4 * device.slices.value, abs=1)
    assert device.dsps.value <= grid_dsps and device.block_rams.value <= grid_rams
    assert (device.transceivers is None) == (device.pcie_blocks is None) == (not name.endswith("t"))
    assert device.block_ram_bits == 18 * 1024


@pytest.mark.parametrize("name", OTHERS)
def test_device_figures(name):
    device = load_device(name)
    luts, ffs, dsps, block_kb, large_kb, ram_luts = OTHERS[name]
    assert device.name == name
    assert (device.luts.value, device.ffs.value, device.dsps.value, device.ram_luts) == (luts, ffs, dsps, ram_luts)
    assert device.block_rams.value * device.block_ram_bits == block_kb * 1024
    assert (device.capacity["large_rams"] * device.large_ram.bits if device.large_ram else 0) == large_kb * 1024
    facts = FAMILIES[device.family]
    assert (device.dsp_kind, device.block_ram_kind) == (facts.dsp, facts.block_ram)
    assert device.large_ram_kind in (None, facts.large_ram) and (device.large_ram_kind is None) == (device.large_rams is None)


def test_lx9_reads_1152_bits_a_cycle():
    assert load_device("xc6slx9").block_ram_read_bits_per_cycle == 1152


def test_all_boards_are_there():
    assert set(list_boards()) == set(PEAK_MB_S)
    assert {load_board(name).device.family for name in list_boards()} == set(FAMILIES)


@pytest.mark.parametrize("name", list_boards())
def test_board_figures(name):
    board = load_board(name)
    assert board.name == name and board.title
    assert board.clock_mhz == default_clock(board.device.family, board.speed_grade)
    assert board.peak_mb_s == pytest.approx(PEAK_MB_S[name])
    assert (board.memory is None) == (PEAK_MB_S[name] == 0)
    if board.memory and board.memory.part_maximum_mt_s:
        assert board.memory.part_maximum_mt_s.value >= board.memory.mt_s.value
    if board.memory:
        assert board.memory.efficiency.trust is board.memory.latency_cycles.trust is Trust.ASSUMPTION
        assert board.memory.kind == "SPRAM" or board.memory.size_mib is not None or name == "vc707"


def test_all_machines_are_there():
    assert set(list_machines()) == set(MACHINES)


@pytest.mark.parametrize("name", list_machines())
def test_machine_figures(name):
    machine = load_machine(name)
    tera_ops, gb_s, ridge = MACHINES[name]
    assert machine.name == name and machine.title
    assert {key: machine.total_gops(key) / 1000 for key in machine.peak_gops} == pytest.approx(tera_ops, rel=0.005)
    assert machine.total_memory_mb_s == pytest.approx(1000 * gb_s)
    assert machine.ridge_ops_per_byte(next(iter(tera_ops))) == pytest.approx(ridge, rel=0.02)


def test_several_devices_and_their_link():
    dgx, p100 = load_machine("dgx-1"), load_machine("p100-sxm2")
    assert dgx.devices.value == 8 and dgx.link_mb_s is not None and dgx.link_mb_s.value == 80_000
    assert dgx.total_memory_bytes == 8 * 16 * 2**30 == 8 * p100.total_memory_bytes
    assert dgx.ridge_ops_per_byte("fp16") == p100.ridge_ops_per_byte("fp16") and dgx.peak_gops["fp32"].value == p100.peak_gops["fp32"].value
    assert load_machine("mos-6502").total_memory_bytes == 65536


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.name)
def test_every_figure_has_a_source(model):
    found = list(figures(model))
    assert found
    assert [path for path, figure in found if figure.source == UNSTATED] == []
    memory = getattr(model, "memory", None)
    assert memory is None or memory.source != UNSTATED
    assert getattr(model, "source", None) != UNSTATED


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.name)
def test_every_file_passes_the_checks_of_a_user_s(model):
    """Built-in files are loaded without them."""
    folder = {Device: "devices", Board: "profiles", Machine: "machines"}[type(model)]
    data = read_mapping(HERE / folder / f"{model.name}.yaml")
    if isinstance(model, Board):
        data["device"] = read_mapping(HERE / "devices" / f"{data['device']}.yaml")
    assert validate(type(model), data, where=model.name) == model


def test_a_board_without_memory_says_why():
    notes = {name: " ".join(load_board(name).notes) for name in ("mimas", "pano-logic-g2", "mojo-v3", "ice40-hx8k-evn")}
    assert "no external memory" in notes["mimas"] and "no external memory" in notes["ice40-hx8k-evn"]
    assert "no controller" in notes["pano-logic-g2"]
    assert "bare Mojo v3 has none" in notes["mojo-v3"]


def test_memory_on_the_chip_is_that_of_the_device():
    for name in ("icebreaker", "ice40-up5k-evn"):
        board = load_board(name)
        assert board.memory is not None and board.device.large_ram is not None
        assert board.memory.kind == "SPRAM" and board.device.large_ram_kind == board.memory.part
        assert board.memory.size_bytes == 4 * 32768 == board.device.capacity["large_rams"] * board.device.large_ram.bits // 8
        assert board.memory.width_bits.value == 2 * board.device.large_ram.port_bits
        assert board.memory.mt_s.value == board.clock_mhz.value and board.memory.size_bytes == 131072


def test_file_names_are_the_names_in_the_files():
    for folder, load in (("devices", load_device), ("profiles", load_board), ("machines", load_machine)):
        for path in (HERE / folder).iterdir():
            assert path.suffix == ".yaml" and load(path.stem).name == path.stem
