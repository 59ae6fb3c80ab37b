"""Requantisation and thresholds against arbitrary-precision Python integers; counts from synthesis."""

from __future__ import annotations

import random

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, ResetInserter, Signal
from amaranth.sim import Simulator

from hdl.design import OutputMultiplier
from hdl.errors import InputError
from hdl.requantize import Requantizer, Threshold
from hdl.synthesis import synthesise

ACCUMULATORS = (16, 24, 32, 44, 48)
ACTIVATIONS = (2, 4, 8, 16)
MAX_MULTIPLIER = (1 << 17) - 1


def exact(acc, multiplier, shift, zero_point, lo, hi):
    rounding = 1 << (shift - 1) if shift else 0
    return min(max(((acc * multiplier + rounding) >> shift) + zero_point, lo), hi)


def extremes(bits):
    top = 1 << (bits - 1)
    accs = (0, 1, -1, top - 1, -top, top // 2, -top // 2 - 1)
    return [(acc, m, s) for acc in accs for m in (0, 1, 2, 65535, 65536, MAX_MULTIPLIER) for s in (0, 1, 15, 16, 17, 31, 32, 47)]


def near_result(rng, bits, activation_bits):
    """An accumulator whose result is near a value of a few more bits than the activation: bounds and ties on both sides."""
    top = 1 << (bits - 1)
    multiplier, shift = rng.randrange(1 << rng.randrange(1, 18)), rng.randrange(48)
    target = rng.randrange(-2 << activation_bits, 2 << activation_bits)
    acc = ((2 * target + 1) << shift) // max(1, 2 * multiplier) + rng.randrange(-2, 3)
    return min(max(acc, -top), top - 1), multiplier, shift


def cases(rng, unit, count):
    bits, top = unit.accumulator_bits, 1 << (unit.accumulator_bits - 1)
    some = rng.sample(extremes(bits), count // 4)
    near = [near_result(rng, bits, unit.activation_bits) for _ in range(count // 2)]
    anywhere = [(rng.randrange(-top, top), rng.randrange(1 << 17), rng.randrange(48)) for _ in range(count // 4)]
    result = [*some, *near, *anywhere]
    rng.shuffle(result)
    return result


def bounds(rng, activation_bits, full):
    """Zero point, lo and hi: of a signed or unsigned activation; or anything that the ports hold."""
    limit = 1 << activation_bits
    if full:
        lo, hi = sorted((rng.randrange(-limit, limit), rng.randrange(-limit, limit)))
        return rng.choice((limit - 1, -limit, rng.randrange(-limit, limit))), lo, hi
    low = rng.choice((0, -limit // 2))
    zero_point = rng.randrange(low, low + limit)
    return zero_point, rng.choice((low, zero_point)), low + limit - 1


def simulate(stage, drive, *, static=None, reset_cycles=()):
    """Drive ``{cycle: {port: value}}``; returns ``{cycle: value}`` of the valid outputs."""
    outputs = {}

    async def bench(ctx):
        for name, value in (static or {}).items():
            ctx.set(getattr(stage, name), value)
        rng = random.Random(1)
        ports = [name for name in stage.signature.members if name.startswith("i_") and name != "i_valid"]
        for cycle in range(max(drive) + 40):
            inputs = drive.get(cycle)
            ctx.set(stage.i_valid, inputs is not None)
            # Parameters hold garbage unless valid.
            for name, value in (inputs or {port: rng.randrange(1 << len(getattr(stage, port))) for port in ports}).items():
                ctx.set(getattr(stage, name), value)
            if ctx.get(stage.o_valid):
                outputs[cycle] = ctx.get(stage.o_value)
            await ctx.tick()

    simulator = Simulator(in_reset(stage, reset_cycles))
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return outputs


def in_reset(stage, cycles):
    if not cycles:
        return stage
    m, now, reset = Module(), Signal(16), Signal()
    m.d.sync += now.eq(now + 1)
    m.d.comb += reset.eq(Cat(now == cycle for cycle in cycles).any())
    m.submodules.stage = ResetInserter(reset)(stage)
    return m


def schedule(rng, unit, inputs, gaps):
    """Half of the inputs back to back, then (``gaps``) with random pauses."""
    cycle, drive = 0, {}
    for index, (acc, multiplier, shift) in enumerate(inputs):
        drive[cycle] = {"i_acc": acc, "i_multiplier": multiplier, "i_shift": shift}
        pause = rng.choice((0, 0, 1, 2, 7, 23)) if gaps and index > len(inputs) // 2 else 0
        cycle += unit.initiation_interval + pause
    return drive


def expected(unit, drive, bound):
    mask = (1 << unit.activation_bits) - 1
    return {cycle + unit.latency_cycles: exact(i["i_acc"], i["i_multiplier"], i["i_shift"], *bound) & mask
            for cycle, i in drive.items()}


@pytest.mark.parametrize("multiplier", OutputMultiplier)
@pytest.mark.parametrize("accumulator_bits", ACCUMULATORS)
@pytest.mark.parametrize("activation_bits", ACTIVATIONS)
def test_hardware_is_exact(multiplier, accumulator_bits, activation_bits):
    unit = Requantizer(accumulator_bits=accumulator_bits, activation_bits=activation_bits, multiplier=multiplier)
    rng = random.Random(f"{multiplier} {accumulator_bits} {activation_bits}")
    drive, truth = {}, {}
    for full in (False, True):
        # The bounds change when nothing is under way.
        start = max(truth, default=-1) + 1
        bound = bounds(rng, activation_bits, full)
        count = 40 if multiplier is OutputMultiplier.SERIAL else 80
        run = {start + cycle: inputs for cycle, inputs in schedule(rng, unit, cases(rng, unit, count), gaps=True).items()}
        truth |= expected(unit, run, bound)
        run[start] |= dict(zip(("zero_point", "lo", "hi"), bound, strict=True))
        drive |= run
    assert simulate(unit.create(), drive) == truth


@pytest.mark.parametrize("multiplier", OutputMultiplier)
@pytest.mark.parametrize("accumulator_bits", (8, 17, 18, 19, 35, 36))
def test_other_widths(multiplier, accumulator_bits):
    unit = Requantizer(accumulator_bits=accumulator_bits, activation_bits=8, multiplier=multiplier)
    rng = random.Random(accumulator_bits)
    bound = (3, -128, 127)
    drive = schedule(rng, unit, cases(rng, unit, 60), gaps=False)
    outputs = simulate(unit.create(), drive, static={"zero_point": 3, "lo": -128, "hi": 127})
    assert outputs == expected(unit, drive, bound)


@pytest.mark.parametrize("multiplier", OutputMultiplier)
def test_all_extremes(multiplier):
    unit = Requantizer(accumulator_bits=32, activation_bits=8, multiplier=multiplier)
    for bound in ((-256, -256, 255), (255, -256, 255)):
        drive = schedule(random.Random(0), unit, extremes(32), gaps=False)
        assert len(drive) == 7 * 6 * 8
        outputs = simulate(unit.create(), drive, static=dict(zip(("zero_point", "lo", "hi"), bound, strict=True)))
        assert outputs == expected(unit, drive, bound)


@pytest.mark.parametrize("multiplier", OutputMultiplier)
def test_reset_drops_what_is_under_way(multiplier):
    unit = Requantizer(accumulator_bits=24, activation_bits=8, multiplier=multiplier)
    rng, bound = random.Random(5), (0, -128, 127)
    reset = 67
    drive = schedule(rng, unit, cases(rng, unit, 30), gaps=False)
    # A new run starts in the cycle after the reset, whatever the old one was doing.
    before = {cycle: inputs for cycle, inputs in drive.items() if cycle < reset}
    after = {cycle + reset + 1: inputs for cycle, inputs in drive.items()}
    outputs = simulate(unit.create(), before | after, static={"zero_point": 0, "lo": -128, "hi": 127}, reset_cycles=(reset,))
    assert outputs == ({cycle: value for cycle, value in expected(unit, before, bound).items() if cycle <= reset}
                       | expected(unit, after, bound))


def test_reference_is_exact():
    rng = random.Random(2)
    for accumulator_bits in (8, *ACCUMULATORS):
        for activation_bits in ACTIVATIONS:
            unit = Requantizer(accumulator_bits=accumulator_bits, activation_bits=activation_bits)
            for full in (False, True, True):
                bound = bounds(rng, activation_bits, full)
                inputs = extremes(accumulator_bits) + cases(rng, unit, 400)
                result = unit.reference(*(np.array(column) for column in zip(*inputs, strict=True)), *bound)
                assert result.dtype == np.int64
                assert result.tolist() == [exact(*row, *bound) for row in inputs]


def test_reference_broadcasts_and_takes_scalars():
    unit = Requantizer(accumulator_bits=32, activation_bits=8)
    acc = np.arange(-60, 60, dtype=np.int32).reshape(2, 3, 4, 5)
    multiplier, shift = np.array([3, 5, 70000]).reshape(1, 3, 1, 1), np.array([0, 2, 16]).reshape(1, 3, 1, 1)
    result = unit.reference(acc, multiplier, shift, 1, 0, 100)
    assert result.shape == acc.shape
    assert result[1, 2, 3, 4] == exact(59, 70000, 16, 1, 0, 100)
    assert result[0, 1, 0, 0] == exact(-40, 5, 2, 1, 0, 100)
    scalar = unit.reference(5, 1, 1, 0, -128, 127)
    assert (scalar, type(scalar)) == (3, int)
    assert unit.reference(-5, 1, 1, 0, -128, 127) == -2
    assert unit.reference(np.zeros(0, np.int64), 1, 1, 0, 0, 1).shape == (0,)


def test_threshold_is_exact():
    rng = random.Random(9)
    for bits in (8, 24, 48):
        unit, top = Threshold(accumulator_bits=bits), 1 << (bits - 1)
        rows = [(a, t, f) for a in (-top, -1, 0, top - 1) for t in (-2 * top, -top, -1, 0, 1, top - 1, top, 2 * top - 1)
                for f in (0, 1)]
        for _ in range(200):
            acc = rng.randrange(-top, top)
            rows.append((acc, rng.choice((acc, acc + 1, rng.randrange(-top, top))), rng.randrange(2)))
        cycle, drive = 0, {}
        for index, (acc, threshold, flip) in enumerate(rows):
            drive[cycle] = {"i_acc": acc, "i_threshold": threshold, "i_flip": flip}
            cycle += 1 if index < 150 else rng.randrange(1, 4)
        truth = [int(acc >= threshold) ^ flip for acc, threshold, flip in rows]
        assert simulate(unit.create(), drive) == {cycle + 1: value for cycle, value in zip(drive, truth, strict=True)}
        assert unit.reference(*(np.array(column) for column in zip(*rows, strict=True))).tolist() == truth
    assert unit.reference(3, 3, 0) == 1
    assert (unit.initiation_interval, unit.latency_cycles, unit.dsp_count, unit.activation_bits) == (1, 1, 0, 1)


def test_threshold_reset():
    unit = Threshold(accumulator_bits=8)
    drive = {cycle: {"i_acc": cycle, "i_threshold": 5, "i_flip": 0} for cycle in range(10)}
    assert simulate(unit.create(), drive, reset_cycles=(4,)) == {
        cycle + 1: int(cycle >= 5) for cycle in range(10) if cycle != 4}


def test_intervals():
    assert [Requantizer(accumulator_bits=32, activation_bits=8, multiplier=kind).initiation_interval
            for kind in ("dsp", "lut", "serial")] == [1, 1, 10]


@pytest.mark.parametrize(("arguments", "message"), [
    ({"accumulator_bits": 49, "activation_bits": 8}, "requantizer.accumulator_bits: out of range, got 49; allowed: 8 to 48"),
    ({"accumulator_bits": 32.0, "activation_bits": 8},
     "requantizer.accumulator_bits: must be a whole number, got 32.0; allowed: 8 to 48"),
    ({"accumulator_bits": 32, "activation_bits": 1},
     "requantizer.activation_bits: not a choice, got 1; allowed: 2, 4, 8, 16 (1-bit activations use Threshold)"),
    ({"accumulator_bits": 32, "activation_bits": 8, "multiplier": "seriel"},
     "requantizer.multiplier: not a choice, got 'seriel'; allowed: dsp, lut, serial; nearest: serial"),
])
def test_construction_errors(arguments, message):
    with pytest.raises(InputError) as error:
        Requantizer(**arguments)
    assert str(error.value) == message


def test_threshold_construction_error():
    with pytest.raises(InputError) as error:
        Threshold(accumulator_bits=7)
    assert str(error.value) == "threshold.accumulator_bits: out of range, got 7; allowed: 8 to 48"


@pytest.mark.parametrize(("arguments", "message"), [
    ((1 << 31, 1, 1, 0, 0, 1), "acc: out of range, got 2147483648; allowed: -2147483648 to 2147483647"),
    ((0, 1 << 17, 1, 0, 0, 1), "multiplier: out of range, got 131072; allowed: 0 to 131071"),
    ((0, 1, [0, 48], 0, 0, 1), "shift: out of range, got 48; allowed: 0 to 47"),
    ((0, 1, -1, 0, 0, 1), "shift: out of range, got -1; allowed: 0 to 47"),
    ((0, 1, 1, 256, 0, 1), "zero_point: out of range, got 256; allowed: -256 to 255"),
    ((0.5, 1, 1, 0, 0, 1), "acc: must be whole numbers, got 0.5"),
])
def test_reference_errors(arguments, message):
    with pytest.raises(InputError) as error:
        Requantizer(accumulator_bits=32, activation_bits=8).reference(*arguments)
    assert str(error.value) == message


def test_serial_takes_under_200_luts():
    pytest.importorskip("pyosys")
    unit = Requantizer(accumulator_bits=32, activation_bits=8, multiplier=OutputMultiplier.SERIAL)
    cells = synthesise(unit.create())[""]
    assert cells.luts + cells.lut_rams < 200
    assert cells.dsps == unit.dsp_count == 0


@pytest.mark.parametrize(("multiplier", "accumulator_bits", "dsps"), [("lut", 32, 0), ("dsp", 36, 3)])
def test_dsp_count(multiplier, accumulator_bits, dsps):
    pytest.importorskip("pyosys")
    unit = Requantizer(accumulator_bits=accumulator_bits, activation_bits=8, multiplier=multiplier)
    # DSP blocks are settled by then; mapping to LUTs takes longer.
    cells = synthesise(unit.create(), run="begin:map_memory")[""]
    assert cells.dsps == unit.dsp_count == dsps
