"""External memory: its timing, and the cycle model that every engine follows.

Each cycle the outputs depend on the state at the start of the cycle alone (a queue of at most 8 bursts, ``wait``,
``credit``)::

    request_ready = queue length < 8
    grant         = queue not empty and wait == 0 and credit + num >= den
    read_valid    = grant and the oldest burst is a read     (read_payload: the beat at its address)
    write_ready   = grant and the oldest burst is a write

and at the clock edge, with ``transfer`` = a granted beat was taken (read) or given (write)::

    if the queue is not empty:  wait > 0:  wait -= 1
                                transfer:  credit += num - den; next beat; the burst leaves after its last one
                                else:      credit = min(credit + num, den)
    if a request is accepted:   it joins the queue; when the queue was empty before this edge, wait = latency, credit = 0

A request accepted at the very edge at which the last burst leaves continues the busy period and pays no latency again.
A fraction's remainder carries over from beat to beat (so n beats take exactly ceil(n*den/num) cycles); a beat that is
offered but not taken saves up at most one beat.

Stalls (optional) come from xorshift32, one draw a cycle, the first one in the first cycle after reset: the draw withholds
``grant`` when its bits 1..0 are zero (1 cycle in 4) and ``request_ready`` when its bits 4..2 are zero (1 in 8).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hdl.errors import InputError
from hdl.timing import MIN_MEMORY_LATENCY_CYCLES
from sim.errors import bad_burst

QUEUE_BURSTS = 8
LATENCY_CYCLES_MAX = 10_000
DENOMINATOR_LIMIT = 1 << 31
SEED_LIMIT = 1 << 32


@dataclass(frozen=True)
class MemoryTiming:
    """Latency and bandwidth of the memory as the core sees it.

    Parameters
    ----------
    latency_cycles: core cycles between an accepted request and its first beat, 8..10000.
    num, den: offered beats per core cycle as a fraction, 0 < num/den <= 1, den < 2**31.
    """

    latency_cycles: int
    num: int
    den: int

    def __post_init__(self) -> None:
        for name, low, high in (("latency_cycles", MIN_MEMORY_LATENCY_CYCLES, LATENCY_CYCLES_MAX),
                                ("den", 1, DENOMINATOR_LIMIT - 1), ("num", 1, self.den)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError("must be a whole number", where=f"memory.{name}", value=value, allowed=f"{low} to {high}")
            if not low <= value <= high:
                raise InputError("out of range", where=f"memory.{name}", value=value, allowed=f"{low} to {high}")

    @classmethod
    def from_fraction(cls, latency_cycles: int, beats_per_cycle: Fraction | int) -> MemoryTiming:
        """From an exact fraction of a beat per core cycle."""
        if isinstance(beats_per_cycle, bool) or not isinstance(beats_per_cycle, Fraction | int):
            raise InputError("must be an exact fraction", where="memory.beats_per_cycle", value=beats_per_cycle,
                             allowed="a Fraction over 0, up to 1")
        fraction = Fraction(beats_per_cycle)
        if not 0 < fraction <= 1:
            raise InputError("out of range", where="memory.beats_per_cycle", value=fraction, allowed="over 0, up to 1")
        return cls(latency_cycles, fraction.numerator, fraction.denominator)

    @property
    def beats_per_cycle(self) -> Fraction:
        return Fraction(self.num, self.den)

    def transfer_cycles(self, beats: int) -> int:
        """Cycles that ``beats`` beats, requested without a pause, take after the cycle that accepts the first request."""
        return self.latency_cycles + -(-beats * self.den // self.num) if beats else 0


def xorshift32(state: int) -> int:
    """The next state of Marsaglia's 32-bit generator (shifts 13, 17, 5); 0 is not a state."""
    state ^= state << 13 & 0xFFFFFFFF
    state ^= state >> 17
    return state ^ (state << 5 & 0xFFFFFFFF)


def stall_state(seed: int) -> int:
    """The generator state whose successor is the first draw: small seeds spread over all 32 bits, and never 0."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < SEED_LIMIT:
        raise InputError("not a seed", where="stall_seed", value=seed, allowed=f"0 to {SEED_LIMIT - 1}")
    return (seed * 2654435761 + 0x9E3779B9) % SEED_LIMIT or 1


class MemoryModel:
    """One cycle at a time, in plain Python: read the outputs, then :meth:`step` over the clock edge.

    Parameters
    ----------
    image: uint8 array of whole beats, little-endian; writes change it in place.
    beat_bytes: bytes of a beat.
    timing: latency and bandwidth.
    stall_seed: withhold grants and requests at random, 0..2**32-1; ``None`` for none.

    Outputs of the current cycle: ``request_ready``, ``read_valid``, ``read_payload`` (0 when not valid), ``write_ready``.
    Statistics: ``beats_read``, ``beats_written``.
    """

    def __init__(self, image: np.ndarray, beat_bytes: int, timing: MemoryTiming, stall_seed: int | None = None) -> None:
        self._bytes = image.data.cast("B")
        self._beat_bytes, self._timing = beat_bytes, timing
        self.image_beats = len(self._bytes) // beat_bytes
        self._queue: deque[list[int]] = deque()  # [address, beats left, is write]
        self._wait = self._credit = 0
        self._random = None if stall_seed is None else xorshift32(stall_state(stall_seed))
        self.beats_read = self.beats_written = 0
        self._update_outputs()

    @property
    def queued(self) -> int:
        """Bursts in the queue, 0..8."""
        return len(self._queue)

    def step(self, *, request: tuple[int, int, bool] | None, read_ready: bool, write_valid: bool, write_payload: int) -> bool:
        """The clock edge, given what the accelerator drove in this cycle; True when a write beat was accepted.

        ``request``: (address in beats, length in beats, is write) when its valid is high.
        """
        queue, timing = self._queue, self._timing
        accept = request is not None and self.request_ready
        write = self.write_ready and write_valid
        transfer = write or (self.read_valid and read_ready)
        was_empty = not queue
        if queue:
            if self._wait:
                self._wait -= 1
            elif transfer:
                self._credit += timing.num - timing.den
            else:
                self._credit = min(self._credit + timing.num, timing.den)
        if transfer:
            head = queue[0]
            if write:
                start = head[0] * self._beat_bytes
                self._bytes[start:start + self._beat_bytes] = write_payload.to_bytes(self._beat_bytes, "little")
                self.beats_written += 1
            else:
                self.beats_read += 1
            head[0] += 1
            head[1] -= 1
            if head[1] == 0:
                queue.popleft()
        if accept and request is not None:
            address, length, is_write = request
            if length == 0 or address + length > self.image_beats:
                raise bad_burst(address=address, length=length, image_beats=self.image_beats)
            queue.append([address, length, int(is_write)])
            if was_empty:
                self._wait, self._credit = timing.latency_cycles, 0
        if self._random is not None:
            self._random = xorshift32(self._random)
        self._update_outputs()
        return write

    def _update_outputs(self) -> None:
        queue, timing, draw = self._queue, self._timing, self._random
        grant = bool(queue) and self._wait == 0 and self._credit + timing.num >= timing.den
        self.request_ready = len(queue) < QUEUE_BURSTS
        if draw is not None:
            grant = grant and draw & 3 != 0
            self.request_ready = self.request_ready and draw >> 2 & 7 != 0
        self.write_ready = grant and bool(queue[0][2])
        self.read_valid = grant and not self.write_ready
        self.read_payload = 0
        if self.read_valid:
            start = queue[0][0] * self._beat_bytes
            self.read_payload = int.from_bytes(self._bytes[start:start + self._beat_bytes], "little")
