"""Options: what they parse to, and nothing but InputError for the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import InputError
from dse.cli.design_options import DesignOptions, parse_buffers
from hdl.design import ELEMENT_BITS, Multiplier

near_sizes = st.text("0123456789.-+ KMGTiBkmib", max_size=8)
near_buffers = st.lists(st.tuples(st.sampled_from(("input", "weight", "output", "psum", "Input", "")), near_sizes), max_size=5).map(
    lambda words: ",".join(f"{kind}={size}" for kind, size in words))


@given(st.lists(st.sampled_from(("input", "weight", "output", "psum")), min_size=1, unique=True), st.data())
def test_buffers(kinds, data):
    sizes = {kind: data.draw(st.tuples(st.integers(1, 64), st.sampled_from((("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)))))
             for kind in kinds}
    text = ",".join(f"{kind}={number}{unit}" for kind, (number, (unit, _)) in sizes.items())
    assert parse_buffers(text) == {kind: number * factor for kind, (number, (_, factor)) in sizes.items()}


@given(st.one_of(st.text(), near_buffers))
def test_any_buffers_parse_or_are_refused(text):
    try:
        sizes = parse_buffers(text)
    except InputError as error:
        assert error.where == "--buffers"
    else:
        assert all(0 <= size <= 1 << 26 for size in sizes.values())


@pytest.mark.parametrize(("text", "message"), [
    ("", "--buffers: not a KIND=SIZE word, got ''; for example: input=8KiB,weight=16KiB,output=2KiB,psum=4KiB"),
    ("input=8", "--buffers: input: a size without a unit, got '8'; allowed: B, KiB (1024 bytes), MiB; nearest: 8B"),
    ("input=8k", "--buffers: input: unknown unit, got '8k'; allowed: B, KiB (1024 bytes), MiB; nearest: 8KiB"),
    ("weight=2MB", "--buffers: weight: unknown unit, got '2MB'; allowed: B, KiB (1024 bytes), MiB; nearest: 2MiB"),
    ("weight=9999999999GiB", "--buffers: weight: unknown unit, got '9999999999GiB'; allowed: B, KiB (1024 bytes), MiB; at most 64MiB"),
    ("weight=1GiB", "--buffers: weight: unknown unit, got '1GiB'; allowed: B, KiB (1024 bytes), MiB; at most 64MiB"),
    ("weight=65MB", "--buffers: weight: unknown unit, got '65MB'; allowed: B, KiB (1024 bytes), MiB; at most 64MiB"),
    ("weight=1.5KiB", "--buffers: weight: not a whole number, got '1.5KiB'; "
                      "for example: input=8KiB,weight=16KiB,output=2KiB,psum=4KiB"),
    ("psum=-1B", "--buffers: psum: out of range, got '-1B'; allowed: 0 B to 64 MiB"),
    ("psum=65MiB", "--buffers: psum: out of range, got '65MiB'; allowed: 0 B to 64 MiB"),
    ("input=1B,input=2B", "--buffers: input is given twice, got 'input=1B,input=2B'"),
])
def test_buffer_messages(text, message):
    with pytest.raises(InputError) as caught:
        parse_buffers(text)
    assert str(caught.value) == message


dimension = st.one_of(st.integers(0, 600).map(str), st.text("0123456789x-+ ", max_size=4))


@given(st.one_of(st.text(), st.lists(dimension, min_size=2, max_size=4).map("x".join)), st.sampled_from(("w8a8", "w1a1")))
def test_any_array_parses_or_is_refused(text, precision):
    try:
        parsed = DesignOptions(array=text, precision=precision).parse()
    except InputError as error:
        assert error.where == "--array"
    else:
        assert parsed.fixed is not None
        rows, cols, lanes = (parsed.fixed[name] for name in ("rows", "cols", "lanes"))
        assert 1 <= rows <= 64 and 1 <= lanes <= 64 and 1 <= cols <= (512 if precision == "w1a1" else 128)


@given(st.one_of(st.text(), st.from_regex(r"w\d{1,3}a\d{1,3}", fullmatch=True)))
def test_any_precision_parses_or_is_refused(text):
    try:
        parsed = DesignOptions(precision=text).parse()
    except InputError as error:
        assert error.where == "--precision"
    else:
        assert parsed.weight_bits in ELEMENT_BITS and parsed.activation_bits in ELEMENT_BITS


def test_fixed_options():
    parsed = DesignOptions(array="2x3x1", precision="w4a8", buffers="psum=0B", multiplier="lut", drains=1, clock_mhz=50).parse()
    assert (parsed.weight_bits, parsed.activation_bits) == (4, 8)
    assert parsed.fixed == {"rows": 2, "cols": 3, "lanes": 1, "psum_bytes": 0, "multiplier": Multiplier.LUT, "drains": 1,
                            "clock_mhz": 50}
