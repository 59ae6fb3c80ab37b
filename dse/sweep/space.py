"""A space: the design points that a sweep looks at, from a YAML file or the default for a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from boards.schema import Board
from boards.strict_yaml import read_mapping
from boards.validation import validate
from dse.estimate.resources import usable
from dse.schedule.banks import BANKS
from dse.schedule.explore import Objective
from dse.sweep.axis import ARRAY_AXES, AXES, BANK_AXES, Axis, parse_axis
from dse.sweep.constraints import RESOURCES, Constraints
from dse.sweep.enumeration import BITS, BOARD_NAMES, Enumeration, Enumerator, binding_order
from dse.sweep.expression import Expression
from dse.sweep.pareto import DEFAULT_GOALS, Goal
from dse.sweep.workload import Workload
from hdl.design import Design
from hdl.errors import InputError, nearest
from hdl.family import block_ram
from hdl.ram import block_ram_depths

MAX_CONDITIONS = 100


def _sequence(value: Any) -> Any:
    """A single text or a list, as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


Texts = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=300)], ...], BeforeValidator(_sequence)]
Goals = Annotated[tuple[Annotated[Goal, Field(strict=False)], ...], BeforeValidator(_sequence)]


class SpaceFile(BaseModel):
    """The keys of SPACE.yaml. Axes take any of the forms of :func:`dse.sweep.axis.parse_axis`; the rest is checked here."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    board: Texts = ()
    rows: Any = None
    cols: Any = None
    lanes: Any = None
    precision: Any = None
    accumulator_bits: Any = None
    multiplier: Any = None
    accumulate: Any = None
    drains: Any = None
    output_multiplier: Any = None
    distributed_depth: Any = None
    chaining: Any = None
    input_bytes: Any = None
    input_depth: Any = None
    weight_bytes: Any = None
    weight_depth: Any = None
    output_bytes: Any = None
    output_depth: Any = None
    psum_bytes: Any = None
    psum_depth: Any = None
    bus_bits: Any = None
    clock_mhz: Any = None
    where: Annotated[Texts, Field(max_length=MAX_CONDITIONS)] = ()
    constraints: Constraints = Constraints()
    objectives: Goals = DEFAULT_GOALS
    mapping: Objective = Field(default=Objective.BOTH, strict=False)


@dataclass(frozen=True)
class Space:
    """Axes, conditions that every point satisfies, and what the sweep wants.

    ``boards``: names or files; the command's ``--board`` comes first. ``objectives``: what the Pareto front is made of. ``mapping``: what
    the mapping of a layer is chosen for. ``where_from``: the file, for messages.
    """

    axes: dict[str, Axis]
    where: tuple[Expression, ...] = ()
    constraints: Constraints = field(default_factory=Constraints)
    objectives: tuple[Goal, ...] = DEFAULT_GOALS
    mapping: Objective = Objective.BOTH
    boards: tuple[str, ...] = ()
    where_from: str = "space"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, where: str = "space") -> Space:
        """From the mapping that a file holds; inverse of :meth:`to_dict`. Raises InputError: file, dotted path, value, what is allowed."""
        checked = validate(SpaceFile, data, where=where)
        axes = {name: parse_axis(name, data[name], where=f"{where}: {name}") for name in AXES if name in data}
        _check_given(axes, where)
        for kind in BANKS:
            if f"{kind}_bytes" not in axes and f"{kind}_depth" not in axes:
                default = Design.__dataclass_fields__[f"{kind}_bytes"].default
                axes[f"{kind}_bytes"] = parse_axis(f"{kind}_bytes", default, where=where)
        listed = isinstance(data.get("where"), list)
        conditions = tuple(Expression(text, where=f"{where}: where" + (f"[{at}]" if listed else ""))
                           for at, text in enumerate(checked.where))
        _check_names(axes, conditions, where)
        if not checked.objectives or len(set(checked.objectives)) < len(checked.objectives):
            raise InputError("must be one objective or several different ones", where=f"{where}: objectives",
                             value=[str(goal) for goal in checked.objectives], allowed=", ".join(Goal))
        return cls(axes, conditions, checked.constraints, checked.objectives, checked.mapping, checked.board, where)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the YAML file holds them."""
        axes = {name: self.axes[name].written for name in AXES if name in self.axes}
        return {**({"board": list(self.boards)} if self.boards else {}), **axes, "where": [condition.text for condition in self.where],
                "constraints": self.constraints.model_dump(exclude_none=True),
                "objectives": [str(goal) for goal in self.objectives], "mapping": str(self.mapping)}

    def enumerate(self, board: Board, workload: Workload, *, first_index: int = 0) -> Enumeration:
        """The points on ``board``, as families, and how many combinations no design can have. Cost: about 0.1 ms a family."""
        return Enumerator(self, board, workload).run(first_index)


def load_space(path: str | Path) -> Space:
    """The space of a YAML file."""
    return Space.from_dict(read_mapping(path), where=str(path))


def _check_given(axes: Mapping[str, Axis], where: str) -> None:
    for name in ("rows", "cols"):
        if name not in axes:
            raise InputError(f"missing key {name!r}", where=where, suggestion=f"for example `{name}: [1, 2, 4]`")
    for kind in BANKS:
        if f"{kind}_bytes" in axes and f"{kind}_depth" in axes:
            raise InputError(f"given together with {kind}_bytes", where=f"{where}: {kind}_depth", value=axes[f"{kind}_depth"].written,
                             suggestion="give one of them")


def _check_names(axes: Mapping[str, Axis], conditions: Sequence[Expression], where: str) -> None:
    """Every name stands for something that is known by then."""
    array_names = {*ARRAY_AXES, *BITS, *BOARD_NAMES}
    bank_names = array_names | {name for name in BANK_AXES if name in axes}
    expressions = [(term, array_names if axis.name in ARRAY_AXES else bank_names, axis.name) for axis in axes.values()
                   for term in axis.terms if isinstance(term, Expression)]
    expressions += [(condition, bank_names | set(RESOURCES), "where") for condition in conditions]
    for expression, known, axis in expressions:
        for name in sorted(expression.names - known):
            if name in BANK_AXES and axis in ARRAY_AXES and name in axes:
                raise InputError(f"{axis} cannot be computed from a bank's size", where=expression.where, value=expression.text,
                                 suggestion="compute the bank's size from it, or use a condition (where)")
            near = nearest(name, sorted(known))
            raise InputError(f"unknown name {name!r}", where=expression.where, value=expression.text, allowed=", ".join(sorted(known)),
                             suggestion=f"nearest: {near}" if near else None)
    binding_order(dict(axes), ARRAY_AXES, where=where)
    binding_order(dict(axes), [name for name in BANK_AXES if name in axes], where=where)


# -- without a file ---------------------------------------------------------------------------------------------------

ROWS = (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64)
COLS = (*ROWS, 96, 128, 192, 256)
LARGE_BLOCK_RAMS, HUGE_BLOCK_RAMS = 64, 512
"""A board with so many (of 18 Kb) has room for many more arrays and splits: fewer values are tried, so that a sweep takes about as long."""
HUGE_SIDES = (1, 2, 4, 8, 16, 32, 48, 64)


def default_space(board: Board, precisions: Sequence[str] = ("w8a8",), *, constraints: Constraints | None = None) -> Space:
    """A sensible space for ``board``: arrays of common sides, with the splits of its block RAM into banks of whole RAMs.

    Nothing that cannot fit is in it, and no two points have the same banks. DSP blocks multiply where they can, as in designs
    chosen by default.
    """
    constraints = constraints or Constraints()
    room = usable(constraints.applied_to(board))["block_rams"]
    large, huge = room >= LARGE_BLOCK_RAMS, room >= HUGE_BLOCK_RAMS
    depths = [*block_ram_depths(board.device.family), 32768, 65536]
    several = [_drains_of_a_lane(count) for count in (2, 4)]
    port = block_ram(board.device.family).port_bits  # that a block RAM reads a cycle
    # The width of a bank is at least this.
    widths = {kind: f"max(cols * {kind}_bits, bus_bits // 2 + 1)" for kind in ("weight", "activation")}
    return Space.from_dict({
        "rows": list(HUGE_SIDES if huge else ROWS), "cols": [*HUGE_SIDES, 128] if huge else list(COLS),
        "lanes": [1, 2, 4, 8] if huge else [1, 2, 3, 4, 6, 8] if large else list(range(1, 9)),
        "precision": list(precisions), "drains": ["lanes", *several] if large else [1, "lanes", *several],
        "output_multiplier": ["serial", "dsp"],
        "input_depth": depths[::2] if huge else depths, "weight_depth": depths[::2] if large else depths,
        "output_depth": [512, 2048] if large else [*depths[:2], 2048, 4096, 8192],
        "psum_depth": [0, 512, 4096] if large else [0, 512, 1024, 2048, 4096, 8192],
        "where": [
            "rows * cols * lanes <= (usable_dsps if usable_dsps and weight_bits + activation_bits >= 8 else usable_luts)",
            "weight_bits + activation_bits == 2 or cols <= 128",
            "output_multiplier == 'serial' or activation_bits > 1",
            f"rows * (({widths['weight']} + {port - 1}) // {port}) + lanes * (({widths['activation']} + {port - 1}) // {port} + 1) + 2 "
            "<= usable_block_rams",
            "dsps <= usable_dsps", "luts <= usable_luts", "ffs <= usable_ffs", "block_rams <= usable_block_rams"],
        "constraints": constraints.model_dump(exclude_none=True)}, where=f"default space of {board.name}")


def _drains_of_a_lane(several: int) -> str:
    """As many drains a lane where a design can have them, or else one."""
    return f"lanes * {several} if rows % {several} == 0 and cols % {several} == 0 and {several} * activation_bits <= bus_bits else lanes"
