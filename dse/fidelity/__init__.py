"""Whether prediction, simulation and golden model agree: on one point, and on random ones."""
