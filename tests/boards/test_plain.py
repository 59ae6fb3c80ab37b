"""Dataclasses from mappings and back."""

from __future__ import annotations

from boards.figures import Logic, RateGops, Trust, WidthBits
from boards.machine import Machine
from boards.plain import from_mapping, hints, to_mapping
from boards.schema import Device, Memory

MEMORY = {"kind": "DDR3", "width_bits": 16, "mt_s": {"value": 800, "source": "page 3", "trust": "read"}, "efficiency": 0.8,
          "latency_cycles": 24}


def test_a_bare_value_is_an_unverified_figure():
    memory = from_mapping(Memory, MEMORY)
    assert memory.width_bits.value == 16 and memory.width_bits.trust is Trust.UNVERIFIED
    assert memory.mt_s.source == "page 3" and memory.mt_s.trust is Trust.READ and memory.kind == "DDR3"
    assert type(memory.mt_s.value) is float and memory.part is None


def test_what_is_an_instance_is_taken_as_it_is():
    width = WidthBits(8, "page 2")
    assert from_mapping(Memory, {**MEMORY, "width_bits": width}).width_bits is width
    machine = from_mapping(Machine, {"name": "m", "peak_gops": {"fp32": 5, "int8": RateGops(7.0)}, "memory_mb_s": 1, "notes": ["a", "b"]})
    assert machine.peak_gops["fp32"] == RateGops(5.0) and machine.peak_gops["int8"].value == 7 and machine.notes == ("a", "b")


def test_there_and_back():
    memory = from_mapping(Memory, MEMORY)
    mapping = to_mapping(memory)
    assert mapping["kind"] == "DDR3" and type(mapping["kind"]) is str and mapping["part"] is None
    assert mapping["mt_s"] == {"value": 800.0, "source": "page 3", "trust": "read"}
    assert from_mapping(Memory, mapping) == memory


def test_limits_are_in_the_types():
    assert hints(Logic)["value"].__metadata__[0].low == 1 and hints(Device)["luts"] is Logic
