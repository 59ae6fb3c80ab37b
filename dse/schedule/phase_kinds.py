"""The kinds of phases of a run: which tiles meet in a phase, and how often. `docs/timing.md`, "Closed form", derives them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from dse.schedule.axes import FIRST, LAST, MIDDLE, SECOND
from dse.schedule.tiling import INPUT_LOOPS, LOOPS, PARAMETER_LOOPS, PIXEL_LOOPS, WEIGHT_LOOPS, Order


@dataclass(frozen=True)
class Structure:
    """What decides which kinds of phases a run has: the order, residency, and the loops with several tiles, outermost first."""

    order: Order
    resident: bool
    loops: tuple[str, ...]

    @property
    def revisiting_loop(self) -> str | None:
        """See :meth:`dse.schedule.tiling.TilePlan.revisiting_loop`."""
        if not self.resident:
            return None
        return "K" if self.order is Order.WEIGHTS_OUTER else next(loop for loop in self.loops if loop in PIXEL_LOOPS)

    @property
    def is_legal(self) -> bool:
        if not self.resident:
            return True
        loops = set(self.loops)
        if self.order is Order.WEIGHTS_OUTER:
            return "S" not in loops and "K" in loops and bool(loops & INPUT_LOOPS)
        return len(loops & PIXEL_LOOPS) == 1 and bool(loops & WEIGHT_LOOPS)

    @property
    def words_loop(self) -> str:
        """The loop along which the input words of a tile differ."""
        return "C" if "C" in self.loops else "S"

    @property
    def channels_loop(self) -> str:
        """The loop along which the output channels of a tile differ."""
        return "K" if "K" in self.loops else "S"

    def repeats(self, data: frozenset[str], kept: bool) -> tuple[str, ...]:
        """Loops that ``data`` does not depend on and along which it is loaded again."""
        if kept:
            return ()
        innermost = max((at for at, loop in enumerate(self.loops) if loop in data), default=-1)
        return tuple(loop for loop in self.loops[:max(innermost, 0)] if loop not in data)


def structures(batch: int, channels: tuple[bool, bool, bool], y: bool, x: bool) -> list[Structure]:
    """Every order and residency of cuts with several tiles along these loops (S, K, C; Y; X)."""
    tiled = {**dict(zip("SKC", channels, strict=True)), "B": batch > 1, "Y": y, "X": x}
    both = (tiled["S"] or tiled["K"]) and (tiled["B"] or y or x)
    result = []
    for order in Order if both else [Order.WEIGHTS_OUTER]:
        loops = tuple(loop for loop in LOOPS[order] if tiled[loop])
        result += [structure for resident in (False, True) if (structure := Structure(order, resident, loops)).is_legal]
    return result


Factor = tuple[str, str]  # a loop, and how many of its tiles: "rest" n-1, "inner" n-2, "tail" max(0, n-3), "three" 1 from n = 3 on
Key = tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of phase. Each key lists classes of tiles along the loops that matter.

    ``load``: (Y, X, words) of the input, (S, K, C) of the weights, (S, K) of the parameters, None where nothing is loaded. ``compute``:
    (Y, X, S, K, C). ``store``: (Y, X, channels). ``evaluates``: a further tile is evaluated. ``counts``: products of factors, to be summed.
    """

    load: tuple[Key | None, Key | None, Key | None]
    compute: Key | None
    store: Key | None
    evaluates: bool
    counts: tuple[tuple[Factor, ...], ...]


Classes = dict[str, int]


@lru_cache(maxsize=1024)
def kinds(structure: Structure) -> tuple[Kind, ...]:
    """All kinds of phases of a run but its last phase (a store alone), equal ones merged."""
    merged: dict[Kind, list[tuple[Factor, ...]]] = {}
    for factors, advanced, load, compute, store in _phases(structure):
        kind = Kind(_load_key(structure, advanced, load), _compute_key(compute), store_key(structure, store), load is not None, ())
        merged.setdefault(kind, []).append(factors)
    return tuple(replace(kind, counts=tuple(counts)) for kind, counts in merged.items())


Phase = tuple[tuple[Factor, ...], int, Classes | None, Classes | None, Classes | None]


def _phases(structure: Structure) -> Iterator[Phase]:
    """(count, outermost loop that advanced, load, compute, store): the classes of the three tiles of every kind of phase."""
    loops = structure.loops
    first, last = dict.fromkeys(loops, FIRST), dict.fromkeys(loops, LAST)
    yield (), -1, first, None, None
    if not loops:
        yield (), 0, None, first, None
        return
    *outer, inner = loops
    depth = len(outer)
    yield (), depth, {**first, inner: SECOND}, first, None
    yield (), 0, None, last, {**last, inner: FIRST}
    # Third and further tiles of the innermost loop: all three tiles in the same iteration of the outer loops.
    for factors, classes in _iterations(structure, outer):
        here = {**classes, inner: FIRST}
        yield (*factors, (inner, "tail")), depth, {**classes, inner: MIDDLE}, here, here
        yield (*factors, (inner, "three")), depth, {**classes, inner: LAST}, here, here
    # First and second tiles of the innermost loop, after loop v has moved on and all loops inside it have started over.
    for at, v in enumerate(outer):
        for factors, classes in _iterations(structure, outer[:at]):
            for count, new in [((v, "rest"), MIDDLE)] if v == "B" else [((v, "inner"), MIDDLE), ((v, "one"), LAST)]:
                before = {**last, **classes, v: FIRST}
                after = {**first, **classes, v: new}
                counted = factors if count[1] == "one" else (*factors, count)
                yield counted, at, after, before, {**before, inner: FIRST}
                yield counted, depth, {**after, inner: SECOND}, after, before


def _iterations(structure: Structure, loops: list[str]) -> Iterator[tuple[tuple[Factor, ...], Classes]]:
    """Every combination of classes of these loops, and how often it occurs."""
    options: list[list[tuple[Factor, int]]] = []
    for loop in loops:
        if loop in "YX":
            options.append([((loop, "one"), FIRST), ((loop, "inner"), MIDDLE), ((loop, "one"), LAST)])
        elif loop == "B":
            options.append([((loop, "one"), FIRST), ((loop, "rest"), MIDDLE)])
        elif loop == structure.revisiting_loop:
            options.append([((loop, "one"), FIRST), ((loop, "inner"), MIDDLE), ((loop, "one"), LAST)])
        else:
            options.append([((loop, "rest"), FIRST), ((loop, "one"), LAST)])
    for combination in product(*options):
        factors = tuple(factor for factor, _ in combination if factor[1] != "one")
        yield factors, {loop: kind for loop, (_, kind) in zip(loops, combination, strict=True)}


def _load_key(structure: Structure, advanced: int, load: Classes | None) -> tuple[Key | None, Key | None, Key | None]:
    if load is None:
        return None, None, None
    revisited = structure.revisiting_loop

    def moves(data: frozenset[str], kept: bool) -> bool:
        moved = advanced < 0 or any(loop in data for loop in structure.loops[advanced:])
        return moved and not (kept and revisited is not None and load[revisited] != FIRST)

    def size(loop: str) -> int:  # along these loops a middle tile is as large as the first
        kind = load.get(loop, FIRST)
        return FIRST if kind == MIDDLE else kind

    weights_outer = structure.order is Order.WEIGHTS_OUTER
    return (
        (load.get("Y", FIRST), load.get("X", FIRST), size(structure.words_loop)) if moves(INPUT_LOOPS, weights_outer) else None,
        (size("S"), size("K"), size("C")) if moves(WEIGHT_LOOPS, not weights_outer) else None,
        (size("S"), size("K")) if moves(PARAMETER_LOOPS, False) else None)


def _compute_key(compute: Classes | None) -> Key | None:
    return None if compute is None else tuple(LAST if compute.get(loop, FIRST) == LAST else FIRST for loop in "YXSKC")


def store_key(structure: Structure, store: Classes | None) -> Key | None:
    if store is None or "C" in structure.loops and store["C"] != LAST:
        return None
    return tuple(LAST if store.get(loop, FIRST) == LAST else FIRST for loop in ("Y", "X", structure.channels_loop))
