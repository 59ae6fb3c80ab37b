"""Two products in one DSP block, as synthesis leaves them: the netlist of a unit multiplies exactly, extremes included."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hdl.design import Design
from hdl.mac import MacUnit, PairUnit
from hdl.synthesis import flow, run_yosys
from hdl.verilog import component_verilog

BENCH = """
module bench;
  localparam W = {weight_bits}, A = {activation_bits}, T = W + A, LATENCY = {latency}, CASES = 400;
  reg clk = 0, rst = 1;
  reg signed [W-1:0] low [0:CASES], high [0:CASES];
  reg signed [A:0] x [0:CASES];
  reg signed [{pair_bits}-1:0] pair;
  reg signed [A:0] activation;
  wire signed [31:0] o_low, o_high;
  integer n, wrong = 0;
  unit dut (.clk(clk), .rst(rst), .i_weights__0(pair), .i_activations__0(activation), .i_enable(1'b1), .i_first(1'b1), .i_capture(1'b1),
            .o_low__0(o_low), .o_high__0(o_high));
  always #5 clk = ~clk;
  function signed [W-1:0] extreme(input integer k);
    extreme = k % 4 == 0 ? {{1'b1, {{(W-1){{1'b0}}}}}} : k % 4 == 1 ? {{1'b0, {{(W-1){{1'b1}}}}}} : k % 4 == 2 ? -1 : 0;
  endfunction
  initial begin
    for (n = 0; n < CASES; n = n + 1) begin
      low[n] = n < 64 ? extreme(n) : $random;
      high[n] = n < 64 ? extreme(n / 4) : $random;
      x[n] = n < 64 ? (n[4] ? -1 : 1) * ((1 << A) - 1 - n[5]) : $random;
      if (x[n] == -(1 << A)) x[n] = 0;
    end
    repeat (4) @(posedge clk);
    rst = 0;
    for (n = 0; n < CASES + LATENCY; n = n + 1) begin
      @(negedge clk);
      if (n >= LATENCY && (o_low !== low[n - LATENCY] * x[n - LATENCY] || o_high !== high[n - LATENCY] * x[n - LATENCY])) wrong = wrong + 1;
      pair = low[n % CASES] + (high[n % CASES] <<< T);
      activation = x[n % CASES];
    end
    $display("%0d wrong", wrong);
    $finish;
  end
endmodule
"""
MODELS = {"xc7": "xilinx/cells_sim.v", "ice40": "ice40/cells_sim.v"}


@pytest.mark.parametrize(("family", "weight_bits", "activation_bits"), [("xc7", 8, 8), ("ice40", 4, 4)])
def test_the_netlist_multiplies_both(family: str, weight_bits: int, activation_bits: int, tmp_path: Path) -> None:
    pyosys = pytest.importorskip("pyosys")
    if not shutil.which("iverilog"):
        pytest.skip("iverilog is not installed")
    design = Design(rows=2, cols=1, weight_bits=weight_bits, activation_bits=activation_bits, multiplier="dsp_pair", family=family,
                    accumulate="per_column", accumulator_bits=32)
    (tmp_path / "unit.v").write_text(component_verilog(PairUnit(design=design), "unit"))
    run_yosys(["read_verilog unit.v", *flow(family, "unit"), "delete t:$scopeinfo", "write_verilog -noattr net.v"], folder=tmp_path)
    (tmp_path / "bench.v").write_text(BENCH.format(weight_bits=weight_bits, activation_bits=activation_bits,
                                                   pair_bits=design.pair_operand_bits, latency=MacUnit.term_latency(design) + 2))
    assert (tmp_path / "net.v").read_text().count({"xc7": "DSP48E1", "ice40": "SB_MAC16"}[family] + " #(") == 1
    cells = Path(pyosys.__file__).parent / "share" / MODELS[family]
    subprocess.run(["iverilog", "-g2012", "-DICE40_U", "-DNO_ICE40_DEFAULT_ASSIGNMENTS", "-s", "bench", "-o", "bench.vvp", "net.v",
                    "bench.v", cells], cwd=tmp_path, check=True, stderr=subprocess.DEVNULL)
    run = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "0 wrong"
