"""Sizes of the tiles along each loop, as formulas; made when a phase first needs them."""

from __future__ import annotations

from dse.explain.derivation import Derivation
from dse.schedule.axes import FIRST, LAST, SECOND
from dse.schedule.phase_kinds import Structure
from dse.schedule.tiling import TilePlan

LOOP_TOTALS = {"S": ("supergroups", "ts", "supergroups"), "K": ("supergroup_outputs", "tk", "output channels"),
               "C": ("words", "tc", "input words"), "Y": ("OY", "ty", "output rows"), "X": ("OX", "tx", "output columns")}
SPATIAL = {"Y": "rows", "X": "columns"}


class TileSizes:
    """Names of quantities of the first, middle and last tile of a loop. Tiles of one loop differ in nothing else."""

    def __init__(self, d: Derivation, plan: TilePlan, structure: Structure) -> None:
        self.d, self.plan, self.structure = d, plan, structure
        d.section("Tiles")
        for loop, (total, size, what) in LOOP_TOTALS.items():
            d.given(size, getattr(plan.tiling, size), "", f"the mapping chosen: {what} of a tile")
            d.let(f"tiles_{loop}", f"ceil({total}/{size})", "tiles")
            d.check(f"tiles_{loop}", len(plan.loops[loop]))
        d.let("tiles_B", "B", "tiles")
        d.let("tiles", "tiles_S*tiles_K*tiles_C*tiles_B*tiles_Y*tiles_X", "tiles")

    def which(self, loop: str, kind: int) -> str:
        """``first``, ``middle`` or ``last``, for a class of :mod:`dse.schedule.axes`."""
        count = len(self.plan.loops[loop])
        at = {FIRST: 0, SECOND: min(1, count - 1), LAST: count - 1}.get(kind, count // 2)
        if at == 0:
            return "first"
        if at == count - 1:
            return "last"
        return "middle" if loop in SPATIAL else "first"  # along the others only the last tile can differ

    def _once(self, name: str, expression: str, unit: str = "", note: str = "") -> str:
        if name not in self.d:
            self.d.let(name, expression, unit, note)
        return name

    def size(self, loop: str, which: str) -> str:
        """Of a tile along a loop."""
        total, size, what = LOOP_TOTALS[loop]
        expression = f"{total} - (tiles_{loop} - 1)*{size}" if which == "last" else f"min({size}, {total})"
        return self._once(f"{size}_{which}", expression, "", f"{what} of the {which} tile")

    # -- rows and columns -------------------------------------------------------------------------------------------------

    def band(self, kind: int) -> str:
        """Output rows of a lane."""
        which = self.which("Y", kind)
        return self._once(f"band_{which}", f"ceil({self.size('Y', which)}/lanes)", "rows", f"of a lane, {which} tile: OY folded on lanes")

    def loaded(self, loop: str, kind: int) -> str:
        """Input rows (or columns) of a tile: those that its taps touch and that are no padding."""
        which, axis = self.which(loop, kind), SPATIAL[loop]
        size = self.size(loop, which)
        first = {"first": "0", "middle": LOOP_TOTALS[loop][1], "last": f"(tiles_{loop} - 1)*{LOOP_TOTALS[loop][1]}"}[which]
        start = self._once(f"{axis}_from_{which}", f"{first}*{axis}_stride", "", "on the grid, where the tile begins")
        return self._once(
            f"input_{axis}_{which}", f"min(({size} - 1)*{axis}_stride + {axis}_reach + 1, {axis}_first + {axis}_count - {start})"
            f" - max(0, {axis}_first - {start})", axis, f"of the input that the {which} tile loads, padding left out")

    def outputs(self, loop: str, kind: int) -> str:
        return self.size(loop, self.which(loop, kind))

    # -- channels ---------------------------------------------------------------------------------------------------------

    def groups(self, kind: int) -> str:
        return self.size("S", self.which("S", kind))

    def channels(self, kind: int) -> str:
        return self.size("K", self.which("K", kind))

    def records(self, kind: int) -> str:
        """Weight runs of a supergroup."""
        return self.channels(kind) if self.plan.grouping.packed == 1 else "group_outputs"

    def blocks(self, kind: int) -> str:
        """Array blocks of a supergroup's output channels in one pass."""
        which, group = self.which("K", kind), self.plan.grouping
        if group.packed == 1:
            return self._once(f"blocks_{which}", f"ceil({self.size('K', which)}/rows)", "blocks", f"K folded on rows, in the {which} tile")
        expression = "1" if self.plan.design.rows % group.group_outputs == 0 else "group_outputs/rows"
        return self._once("blocks", expression, "blocks", "of a pass: K folded on rows")

    def vectors(self, kind: int) -> str:
        """Operand vectors of a reduction."""
        which = self.which("C", kind)
        return self._once(f"L_{which}", f"{self.size('C', which)}*FY*FX", "vectors", f"of a pixel group in the {which} tile, one a cycle")

    def spaced(self, kind: int) -> str:
        """Cycles from one pixel group to the next."""
        vectors = self.vectors(kind)
        return self._once(f"spacing_{self.which('C', kind)}", f"max({vectors}, drain)", "cycles",
                          "from one pixel group to the next: vectors or drains, whichever take longer")

    def runs(self, kind: int) -> str:
        """Beats of one output channel's weights."""
        return self._once(f"run_beats_{self.which('C', kind)}",
                          f"ceil({self.vectors(kind)}/weight_words_per_entry)*weight_beats_per_entry", "beats",
                          "of one output channel's weights")

    def pixel_in(self, kind: int) -> str:
        """Beats of an input pixel's part."""
        loop = self.structure.words_loop
        which = self.which(loop, kind)
        words = self.size("C", which) if loop == "C" else f"{self.size('S', which)}*words"
        return self._once(f"input_pixel_beats_{which}", f"ceil({words}/input_words_per_entry)*input_beats_per_entry", "beats",
                          "of an input pixel's channels in the tile")

    def pixel_out(self, kind: int) -> str:
        """Beats of an output pixel's part: its last word is cut at its last used beat."""
        loop = self.structure.channels_loop
        which = self.which(loop, kind)
        channels = f"{self.size('S', which if loop == 'S' else 'first')}*{self.size('K', which if loop == 'K' else 'first')}"
        if self.plan.design.beats_per_entry("output") == 1:
            expression = f"ceil(ceil({channels}/cols)/output_words_per_entry)"
        else:
            expression = (f"floor({channels}/cols)*output_beats_per_entry"
                          f" + ceil(({channels} - floor({channels}/cols)*cols)*activation_bits/bus_bits)")
        return self._once(f"output_pixel_beats_{which}", expression, "beats", "of an output pixel's channels in the tile")
