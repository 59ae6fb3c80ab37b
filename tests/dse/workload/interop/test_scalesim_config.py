"""SCALE-Sim configurations: what is read, the design that it starts from, and what is wrong in it."""

from __future__ import annotations

import pytest

from boards import load_board
from boards.errors import InputError
from dse.sweep.space import Space
from dse.sweep.workload import Workload
from dse.workload.interop.scalesim_config import ScaleSimConfig, load_config
from dse.workload.zoo import load_network
from hdl.layer import Layer

TEXT = """[general]
run_name = example
[architecture_presets]
ArrayHeight:    8
arraywidth = 4
IfmapSramSzkB:  64
FilterSramSzkB: 32
OfmapSramSzkB:  2
IfmapOffset: 0
Dataflow: WS
Bandwidth: 10, 20
[run_presets]
InterfaceBandwidth: CALC
"""


@pytest.fixture
def load(tmp_path):
    def from_text(text: str) -> ScaleSimConfig:
        path = tmp_path / "s.cfg"
        path.write_text(text)
        return load_config(str(path))

    return from_text


@pytest.fixture
def message(load, tmp_path):
    def of(text: str) -> str:
        with pytest.raises(InputError) as caught:
            load(text)
        return str(caught.value).replace(str(tmp_path / "s.cfg"), "s.cfg")

    return of


def test_what_is_read(load):
    config = load(TEXT)
    assert (config.height, config.width, config.dataflow, config.array) == (8, 4, "ws", "8x4 ws")
    assert (config.input_kib, config.weight_kib, config.output_kib, config.is_bandwidth_bound) == (64, 32, 2, False)
    assert load(TEXT.replace("CALC", "USER")).is_bandwidth_bound
    # What SCALE-Sim demands and this does not need may be missing; SRAM sizes are then its own defaults.
    short = load("[architecture_presets]\nArrayHeight=8\nArrayWidth=4\nDataflow=os\n")
    assert (short.input_kib, short.weight_kib, short.output_kib) == (256, 256, 128)


def test_the_same_loops_lie_along_the_sides(load):
    """ws: height sums over inputs, width has output channels; os: height has pixels; is: height sums, width has pixels."""
    assert {dataflow: load(TEXT.replace("WS", dataflow)).starting_array for dataflow in ("ws", "os", "is")} == {
        "ws": (4, 8, 1), "os": (4, 1, 8), "is": (1, 8, 4)}
    assert load(TEXT).design_options() == {"rows": 4, "cols": 8, "lanes": 1, "input_bytes": 65536, "weight_bytes": 32768,
                                           "output_bytes": 2048}


def test_arrays_larger_than_ours(load, tmp_path):
    key = "ArrayHeight"
    for dataflow, side, most in (("ws", "cols", 128), ("os", "lanes", 64), ("is", "cols", 128)):
        with pytest.raises(InputError) as caught:
            load(TEXT.replace("WS", dataflow).replace("ArrayHeight:    8", "ArrayHeight: 256")).design_options()
        assert str(caught.value) == (f"{tmp_path / 's.cfg'}: {key}: in {dataflow} this side becomes {side} of a design, got 256; "
                                     f"allowed: at most {most}; start from a smaller array")


def test_the_space_has_every_array_with_as_many_multipliers(load):
    space = Space.from_dict(load(TEXT).space())
    found = space.enumerate(load_board("papilio-pro"), Workload("w", (("l", Layer.linear(K=4, C=4), 1),)))
    arrays = {(family.design.rows, family.design.cols, family.design.lanes) for family in found.families}
    assert arrays == {(rows, cols, lanes) for rows in range(1, 33) for cols in range(1, 33) for lanes in range(1, 33)
                      if rows * cols * lanes == 32}
    assert Space.from_dict(load(TEXT.replace("ArrayHeight:    8", "ArrayHeight: 500")).space())  # too large for one design, not for a space


def test_counts(load):
    """ResNet-18's 20 convolutions took SCALE-Sim 2,806,392 cycles with inputs as large as the outputs need; the three 1x1 layers of
    stride 2 read an even number of rows, which it counts as one more output row and column."""
    config = load(TEXT.replace("ArrayHeight:    8", "ArrayHeight: 32").replace("arraywidth = 4", "arraywidth = 32"))
    counts = config.counts(load_network("resnet18"))
    more = 2 * 4 * (29**2 - 28**2) + 4 * 8 * (15**2 - 14**2) + 8 * 16 * (8**2 - 7**2)  # folds of 32 channels by 32 filters
    assert sum(list(counts.values())[:20]) == 2_806_392 + more
    assert counts["layer1.0.conv1"] == 36 * (56 * 56 + 94) - 1  # 64*9 / 32 rows by 64 / 32 columns of folds
    assert config.cycles(Layer.linear(K=4, C=4), repeat=3) == 3 * (1 + 94 - 1)


def test_layers_without_a_count(load):
    from dse.workload.network_file import network_from_mapping

    network = network_from_mapping({"nodes": [{"op": "input", "shape": [1, 1, 9, 9]}, {"op": "conv", "name": "d", "K": 1, "F": 3, "D": 2}]},
                                   where="net")
    assert load(TEXT).counts(network) == {"d": "SCALE-Sim has no dilation"}


@pytest.mark.parametrize("change, what", [
    (("ArrayHeight:    8\n", ""), "s.cfg: ArrayHeight: missing; allowed: 1 to 65536"),
    (("ArrayHeight:    8", "ArrayHeight: 8.5"), "s.cfg: ArrayHeight: must be a whole number, got '8.5'; allowed: 1 to 65536"),
    (("ArrayHeight:    8", "ArrayHeight: 0"), "s.cfg: ArrayHeight: out of range, got '0'; allowed: 1 to 65536"),
    (("64", "99999999999"), "s.cfg: IfmapSramSzkB: out of range, got '99999999999'; allowed: 1 to 65536"),
    (("WS", "rs"), "s.cfg: Dataflow: not a dataflow, got 'rs'; allowed: os, ws, is; nearest: ws"),
    (("Dataflow: WS\n", ""), "s.cfg: Dataflow: missing, got ''; allowed: os, ws, is"),
    (("arraywidth", "ArrayWidht"), "s.cfg: [architecture_presets]: unknown key, got 'arraywidht'; allowed: ArrayHeight, ArrayWidth, "
                                   "IfmapSramSzkB, FilterSramSzkB, OfmapSramSzkB, Dataflow, IfmapOffset, FilterOffset, OfmapOffset, "
                                   "Bandwidth, ReadRequestBuffer, WriteRequestBuffer, MemoryBanks; nearest: ArrayWidth"),
    (("CALC", "CALK"), "s.cfg: InterfaceBandwidth: not a choice, got 'CALK'; allowed: CALC, USER; nearest: CALC"),
    (("[architecture_presets]", "[architecture]"), "s.cfg: no section [architecture_presets], got ['general', 'architecture', "
                                                   "'run_presets']; "
                                                   "nearest: architecture"),
    (("[general]\n", ""), "s.cfg:1: not a configuration: MissingSectionHeaderError; [section] lines and key = value lines, as in "
                          "[architecture_presets]"),
    (("run_name = example", "run_name"), "s.cfg:2: not a configuration: ParsingError; [section] lines and key = value lines, as in "
                                         "[architecture_presets]"),
    (("arraywidth = 4", "ArrayHeight = 4"), "s.cfg:5: not a configuration: DuplicateOptionError; [section] lines and key = value lines, "
                                            "as in "
                                            "[architecture_presets]")])
def test_wrong_configurations(message, change, what):
    assert message(TEXT.replace(*change)) == what
