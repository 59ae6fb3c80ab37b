"""Every latency of the hardware that the prediction uses, in one place (unit: core cycles).

`docs/timing.md` draws where each one sits; `tests/dse/schedule/test_predict.py` and `benchmarks/fidelity.py` hold them against simulation.
"""

MIN_MEMORY_LATENCY_CYCLES = 8
"""Shortest memory latency accepted: the request queue is filled during it, so that transfers of a phase never leave a gap."""

START_CYCLES = 1
"""From the cycle that takes `start` to the cycle in which the request for the program is accepted."""

FETCH_END_CYCLES = 2
"""From the cycle of the program's last beat to the first instruction's address being presented."""

INSTRUCTION_CYCLES = 2
"""Every instruction: one cycle to read it, one to read its operand."""

FIRST_EVALUATION_CYCLES = 4
"""The first evaluation beyond its instructions: reading the header, entering and leaving."""

EVALUATION_CYCLES = 3
"""A tile's evaluation beyond its instructions: entering the routine and leaving it."""

PHASE_CHANGE_CYCLES = 2
"""From the cycle in which the last engine of a phase is done to the first cycle of the next phase."""

MEMORY_START_CYCLES = 1
"""From a phase's first cycle to the cycle in which its first request is accepted."""

MEMORY_END_CYCLES = 1
"""From the cycle of a phase's last beat to the cycle in which the memory queue is seen to be done."""

STORE_ON_CHIP_START_CYCLES = 1
"""From a phase's first cycle to the cycle before the first beat of a store on chip; loads follow as if the phase began with its last."""

COMPUTE_START_CYCLES = 2
"""From a phase's first cycle to the first cycle that issues an operand vector."""

READ_CYCLES = 1
"""A bank's read latency: from the issuing cycle to the cycle in which the array sees the words."""
