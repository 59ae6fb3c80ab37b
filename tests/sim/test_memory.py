from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.errors import InputError
from sim.errors import SimulationError
from sim.memory import MemoryModel, MemoryTiming, stall_state, xorshift32

BEAT_BYTES = 4


def image(beats: int = 256) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, beats * BEAT_BYTES, dtype=np.uint8)


def idle(model: MemoryModel, request: tuple[int, int, bool] | None = None, **ready: bool) -> bool:
    return model.step(request=request, read_ready=ready.get("read_ready", True),
                      write_valid=ready.get("write_valid", True), write_payload=0xA5A5A5A5)


@pytest.mark.parametrize(("arguments", "message"), [
    ((7, 1, 1), "memory.latency_cycles: out of range, got 7; allowed: 8 to 10000"),
    ((10_001, 1, 1), "memory.latency_cycles: out of range, got 10001; allowed: 8 to 10000"),
    ((8.0, 1, 1), "memory.latency_cycles: must be a whole number, got 8.0; allowed: 8 to 10000"),
    ((8, 1, 0), "memory.den: out of range, got 0; allowed: 1 to 2147483647"),
    ((8, 1, 1 << 31), "memory.den: out of range, got 2147483648; allowed: 1 to 2147483647"),
    ((8, 0, 5), "memory.num: out of range, got 0; allowed: 1 to 5"),
    ((8, 6, 5), "memory.num: out of range, got 6; allowed: 1 to 5"),
    ((8, True, 5), "memory.num: must be a whole number, got True; allowed: 1 to 5"),
])
def test_timing_refuses(arguments, message):
    with pytest.raises(InputError) as caught:
        MemoryTiming(*arguments)
    assert str(caught.value) == message


def test_from_fraction():
    assert MemoryTiming.from_fraction(9, Fraction(28, 50)) == MemoryTiming(9, 14, 25)
    assert MemoryTiming.from_fraction(9, 1) == MemoryTiming(9, 1, 1)
    assert MemoryTiming(9, 28, 50).beats_per_cycle == Fraction(14, 25)
    with pytest.raises(InputError) as caught:
        MemoryTiming.from_fraction(9, Fraction(3, 2))
    assert str(caught.value) == "memory.beats_per_cycle: out of range, got Fraction(3, 2); allowed: over 0, up to 1"
    with pytest.raises(InputError) as caught:
        MemoryTiming.from_fraction(9, 0.56)  # type: ignore[arg-type]
    assert str(caught.value) == "memory.beats_per_cycle: must be an exact fraction, got 0.56; allowed: a Fraction over 0, up to 1"


def test_no_beats_take_no_time():
    assert MemoryTiming(8, 1, 3).transfer_cycles(0) == 0


@settings(max_examples=60, deadline=None)
@given(latency=st.integers(8, 40), num=st.integers(1, 1000), extra=st.integers(0, 1000),
       lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12), is_write=st.booleans())
def test_bursts_back_to_back_take_latency_and_the_ceiling(latency, num, extra, lengths, is_write):
    """Every beat arrives in the cycle that the exact fraction gives, and the last as ``transfer_cycles`` says."""
    timing = MemoryTiming(latency, num, num + extra)
    data = image()
    before = data.copy()
    model = MemoryModel(data, BEAT_BYTES, timing)
    waiting, address, cycle, arrivals = list(lengths), 3, 0, []
    while len(arrivals) < sum(lengths):
        request = (address, waiting[0], is_write) if waiting else None
        accepted = request is not None and model.request_ready
        if model.read_valid or model.write_ready:
            beat = 3 + len(arrivals)
            if model.read_valid:
                assert model.read_payload == int.from_bytes(before[beat * BEAT_BYTES:][:BEAT_BYTES].tobytes(), "little")
            arrivals.append(cycle)
        idle(model, request)
        if accepted:
            address += waiting.pop(0)
        cycle += 1
    assert arrivals == [latency + math.ceil(Fraction(n * timing.den, timing.num)) for n in range(1, len(arrivals) + 1)]
    assert arrivals[-1] == timing.transfer_cycles(sum(lengths))
    assert (model.beats_read, model.beats_written) == ((0, sum(lengths)) if is_write else (sum(lengths), 0))
    expected = before.copy()
    if is_write:
        expected[3 * BEAT_BYTES:(3 + sum(lengths)) * BEAT_BYTES] = 0xA5
    assert (data == expected).all()


def test_queue_holds_eight_bursts():
    model = MemoryModel(image(), BEAT_BYTES, MemoryTiming(100, 1, 1))
    for burst in range(8):
        assert model.request_ready
        idle(model, (burst, 1, False))
    assert not model.request_ready and model.queued == 8
    idle(model, (8, 1, False))
    assert model.queued == 8


def cycles_until_offered(model: MemoryModel) -> int:
    cycles = 0
    while not model.read_valid:
        idle(model)
        cycles += 1
    return cycles


def test_request_at_the_last_edge_pays_no_latency():
    model = MemoryModel(image(), BEAT_BYTES, MemoryTiming(20, 1, 1))
    idle(model, (0, 1, False))
    assert cycles_until_offered(model) == 20
    idle(model, (1, 1, False))  # accepted while the last beat leaves
    assert cycles_until_offered(model) == 0


def test_request_after_the_last_edge_pays_latency_again():
    model = MemoryModel(image(), BEAT_BYTES, MemoryTiming(20, 1, 1))
    idle(model, (0, 1, False))
    cycles_until_offered(model)
    idle(model)
    idle(model, (1, 1, False))
    assert cycles_until_offered(model) == 20


def test_beat_not_taken_stays_and_saves_one_beat_only():
    model = MemoryModel(image(), BEAT_BYTES, MemoryTiming(8, 1, 4))
    idle(model, (5, 9, False))
    assert cycles_until_offered(model) == 8 + 3
    payload = model.read_payload
    for _ in range(50):
        idle(model, read_ready=False)
        assert model.read_valid and model.read_payload == payload
    idle(model)
    assert cycles_until_offered(model) == 2  # 1/4 was earned while the waiting beat was taken
    idle(model)
    assert cycles_until_offered(model) == 3


@pytest.mark.parametrize(("burst", "what"), [((250, 7, False), "a burst of 7 beats at beat 0xfa"),
                                             ((3, 0, True), "an empty burst at beat 0x3")])
def test_bad_burst(burst, what):
    model = MemoryModel(image(), BEAT_BYTES, MemoryTiming(8, 1, 1))
    with pytest.raises(SimulationError) as caught:
        idle(model, burst)
    assert str(caught.value) == f"the accelerator requested {what}; the memory image has 256 beats"


def test_xorshift32_is_marsaglias():
    assert xorshift32(2463534242) == 723471715  # the first output in "Xorshift RNGs", 2003
    state = np.array([2463534242], np.uint32)
    value = int(state[0])
    for _ in range(1000):  # the same in wrapping arithmetic
        for left, shift in ((True, 13), (False, 17), (True, 5)):
            state ^= state << np.uint32(shift) if left else state >> np.uint32(shift)
        value = xorshift32(value)
        assert value == int(state[0])


def test_seed_range():
    for seed in (-1, 1 << 32, True, 1.5):
        with pytest.raises(InputError) as caught:
            stall_state(seed)  # type: ignore[arg-type]
        assert str(caught.value) == f"stall_seed: not a seed, got {seed!r}; allowed: 0 to 4294967295"
    zero = -0x9E3779B9 * pow(2654435761, -1, 1 << 32) % (1 << 32)  # the one seed that would give state 0
    assert stall_state(zero) == 1
    assert len({stall_state(seed) for seed in range(1000)}) == 1000


def test_stalls_withhold_a_quarter_of_grants_and_an_eighth_of_requests():
    model = MemoryModel(image(), BEAT_BYTES, MemoryTiming(8, 1, 1), stall_seed=5)
    refused = withheld = granted = 0
    for cycle in range(40_000):
        refused += not model.request_ready and model.queued < 8
        if cycle > 100:  # the queue never runs empty: 4-beat bursts, a request in 7 of 8 cycles
            withheld += not model.read_valid
            granted += model.read_valid
        idle(model, (0, 4, False) if model.queued < 7 else None)
    assert abs(withheld / (withheld + granted) - 1 / 4) < 0.01
    assert abs(refused / 40_000 - 1 / 8) < 0.01
