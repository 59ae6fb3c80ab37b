"""Bank depths as arrays, and which of them make programs of the same length."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdl.design import Design
from hdl.mapping import ceil_div
from hdl.program import IMMEDIATE_BITS, RECORD_BITS

BANKS = ("input", "weight", "output", "psum")
"""The columns of an array of bank depths."""


def design_with_depths(design: Design, depths: list[int]) -> Design:
    """The design with banks of so many entries each, in the order of ``BANKS``."""
    return design.with_(**{f"{kind}_bytes": ceil_div(depth * design.bank_width_bits(kind) * design.bank_count(kind), 8)
                           for kind, depth in zip(BANKS, depths, strict=True)})


@lru_cache(maxsize=64)
def alike(design: Design, depths: bytes) -> list[tuple[Design, NDArray[np.intp]]]:
    """Rows of depths whose programs have the same fields in as many words, with a design of that kind. ``depths``: of int64."""
    rows = np.frombuffer(depths, np.int64).reshape(-1, len(BANKS))
    # Fields that need a word of data, because they do not fit an instruction: addresses of words, and the number of weight records.
    limits = [("psum", 0), *((kind, 1 << IMMEDIATE_BITS - (design.words_per_entry(kind) - 1).bit_length()) for kind in ("input", "weight")),
              ("weight", 1 << IMMEDIATE_BITS - RECORD_BITS)]
    kinds = np.zeros(len(rows), int)
    for number, (bank, most) in enumerate(limits):
        kinds += (rows[:, BANKS.index(bank)] > most).astype(int) << number
    groups = [np.flatnonzero(kinds == number) for number in dict.fromkeys(kinds.tolist())]
    return [(design_with_depths(design, rows[which[0]].tolist()), which) for which in groups]
