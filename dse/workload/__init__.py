"""Workloads: layers written in place, layer and design files."""
