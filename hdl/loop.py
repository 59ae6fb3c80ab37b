"""Counters and addresses of nested loops, in few look-up tables and with short paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value, ValueLike

from boards.primitives import Family


class Ahead(NamedTuple):
    """What ``last`` of a loop becomes."""

    single: Value  # when the loop begins: it has one iteration
    ending: Value  # with a step that does not end it: the next iteration is the last


def count_loop(m: Module, last: Signal, limit: Value, *, clear: ValueLike, step: ValueLike, name: str) -> Ahead:
    """Drives ``last``: the loop is in its last iteration, number ``limit``.

    ``clear`` goes to iteration 0 and wins over ``step``, which goes to the next one; both act with the next cycle. Clear in the
    last iteration to begin again. ``limit`` must be valid with ``clear`` and stay.

    The comparison is made a cycle ahead, so a path that begins with ``last`` begins at a register; it does not wait for ``clear``
    and ``step``, which may come late; and a counter that has nothing but a reset, an enable and an increment needs no look-up tables.
    """
    ahead = Signal(len(limit), name=f"{name}_ahead", init=1)  # number of the next iteration
    with m.If(clear):
        m.d.sync += ahead.eq(1)
    with m.Elif(step):
        m.d.sync += ahead.eq(ahead + 1)
    becomes = Ahead(single=limit == 0, ending=ahead == limit)
    with m.If(clear | step):
        m.d.sync += last.eq(Mux(clear, becomes.single, becomes.ending))
    return becomes


def walk_address(m: Module, address: Signal, *, start: Value, first: Value, step: Value, stride: ValueLike, ends: Sequence[Value],
                 strides: Sequence[Value], name: str) -> None:
    """Drives ``address``, which walks runs of words inside two loops.

    ``start`` sets it to ``first`` and wins over ``step``. A step adds ``stride``; but with ``ends[0]`` the inner loop goes on:
    its iteration began at some address, and the next is ``strides[0]`` after that. With ``ends[1]``, which implies ``ends[0]``,
    the outer loop goes on in the same way.

    One adder makes all of it, the start included, so that no register has a multiplexer of its own: two look-up tables a bit.
    """
    inner, outer = (Signal(len(address), name=f"{name}_{loop}") for loop in ("inner", "outer"))
    choice = Signal(2, name=f"{name}_choice")
    m.d.comb += choice.eq(Cat(~start & (ends[1] | ~ends[0]), ~start & ends[0]))
    base = choose(choice, [first, address, inner, outer])
    added = choose(choice, [C(0, 1), Value.cast(stride), *strides])
    following = (base + added)[:len(address)]
    with m.If(start | step):
        m.d.sync += address.eq(following)
    with m.If(start | step & ends[0]):
        m.d.sync += inner.eq(following)
    with m.If(start | step & ends[1]):
        m.d.sync += outer.eq(following)


def choose(choice: Value, options: Sequence[Value]) -> Value:
    """``options[choice]``: one look-up table a bit for the 2 bits of ``choice`` and four options."""
    low = [Mux(choice[0], odd, even) for even, odd in zip(options[::2], options[1::2], strict=True)]
    return Mux(choice[1], low[1], low[0])


def is_below(a: Value, b: Value, family: Family) -> Value:
    """``a < b``. On Lattice's families as the sign of the difference: a sum bit ends its carry chain, where a carry that leaves one would
    cost more time. Elsewhere the comparison takes half the look-up tables.
    """
    return (a - b)[-1] if family in (Family.ECP5, Family.ICE40) else a < b
