"""Sweeps: spaces of design points, their evaluation on a workload, and what is best among them."""
