"""Explanations: every number of a prediction as a formula with its values."""
