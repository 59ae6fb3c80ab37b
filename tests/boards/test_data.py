"""The built-in devices and boards against the published tables, and every figure with its source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

import boards
from boards import Figure, Trust, list_boards, list_devices, load_board, load_device
from boards.schema import UNSTATED

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
# Peak MB/s as the LiteX targets clock the memories; 0 for none.
PEAK_MB_S = {"papilio-pro": 160, "mojo-v3": 62.5, "minispartan6-plus": 160, "minispartan6-plus-lx25": 160, "linsn-rv901t": 300,
             "pipistrello": 666.66, "atlys": 600, "sp605": 864, "pano-logic-g2": 0, "mimas": 0, "nexys-3": 160, "sp601": 1250,
             "mimas-v2": 666.66, "saturn": 666.66, "saturn-lx9": 666.66, "lx9-microboard": 800, "sk-xc6slx9": 50}


def figures(model: BaseModel) -> Iterator[tuple[str, Figure]]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, Figure):
            yield name, value
        elif isinstance(value, BaseModel):
            yield from ((f"{name}.{inner}", figure) for inner, figure in figures(value))


def test_all_spartan6_devices_are_there():
    expected = {f"xc6slx{size}" for size in SPARTAN6} | {f"xc6slx{size}t" for size in ("25", "45", "75", "100", "150")}
    assert set(list_devices()) == expected
    assert list_devices()[:3] == ("xc6slx4", "xc6slx9", "xc6slx16")


@pytest.mark.parametrize("name", list_devices())
def test_device_figures(name):
    device = load_device(name)
    size = name.removeprefix("xc6slx").rstrip("t")
    luts, ffs, dsps, block_rams, controllers, grid_rams, grid_dsps = SPARTAN6[size]
    assert device.name == name and device.family == "xc6s"
    assert device.capacity == {"luts": luts, "ffs": ffs, "dsps": dsps, "block_rams": block_rams,
                               "carry_luts": luts // 2, "ram_luts": luts // 4}
    assert device.memory_controllers is not None and device.memory_controllers.value == controllers
    assert device.slices is not None and device.logic_cells is not None
    assert device.slices.value * 4 == luts and device.slices.value * 8 == ffs
    assert device.logic_cells.value == pytest.approx(6.4 * device.slices.value, abs=1)
    assert device.dsps.value <= grid_dsps and device.block_rams.value <= grid_rams
    assert (device.transceivers is None) == (device.pcie_blocks is None) == (not name.endswith("t"))
    assert device.block_ram_bits == 18 * 1024


def test_lx9_reads_1152_bits_a_cycle():
    assert load_device("xc6slx9").block_ram_read_bits_per_cycle == 1152


def test_all_boards_are_there():
    assert set(list_boards()) == set(PEAK_MB_S)


@pytest.mark.parametrize("name", list_boards())
def test_board_figures(name):
    board = load_board(name)
    assert board.name == name and board.title
    assert board.clock_mhz.value == 100
    assert board.peak_mb_s == pytest.approx(PEAK_MB_S[name])
    assert (board.memory is None) == (PEAK_MB_S[name] == 0)
    if board.memory and board.memory.part_maximum_mt_s:
        assert board.memory.part_maximum_mt_s.value >= board.memory.mt_s.value
    if board.memory:
        assert board.memory.efficiency.trust is board.memory.latency_cycles.trust is Trust.ASSUMPTION


@pytest.mark.parametrize("model", [load_device(n) for n in list_devices()] + [load_board(n) for n in list_boards()],
                         ids=lambda model: model.name)
def test_every_figure_has_a_source(model):
    found = list(figures(model))
    assert found
    assert [path for path, figure in found if figure.source == UNSTATED] == []
    memory = getattr(model, "memory", None)
    assert memory is None or memory.source != UNSTATED
    assert getattr(model, "source", None) != UNSTATED


def test_a_board_without_memory_says_why():
    notes = {name: " ".join(load_board(name).notes) for name in ("mimas", "pano-logic-g2", "mojo-v3")}
    assert "no external memory" in notes["mimas"]
    assert "no controller" in notes["pano-logic-g2"]
    assert "bare Mojo v3 has none" in notes["mojo-v3"]


def test_file_names_are_the_names_in_the_files():
    here = Path(boards.__file__).parent
    for folder, load in (("devices", load_device), ("profiles", load_board)):
        for path in (here / folder).iterdir():
            assert path.suffix == ".yaml" and load(path.stem).name == path.stem
