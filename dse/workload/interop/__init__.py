"""Layers and networks in the formats of other tools: SCALE-Sim, ZigZag, Timeloop."""
