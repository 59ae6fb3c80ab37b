"""Rooflines: what a machine can attain on a layer, and where designs land."""
