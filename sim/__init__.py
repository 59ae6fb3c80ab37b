"""Run the generated hardware: memory model, engines (Amaranth's own and Verilator) and golden model."""
