"""Pins of a board as its vendor's constraint file, from the package amaranth-boards where it has the board."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Module, ResetSignal, Signal
from amaranth.lib import io

from boards.schema import Board
from hdl.errors import InputError

SUFFIXES = (".xdc", ".ucf", ".lpf", ".pcf", ".cst")
"""Vivado, ISE, Lattice's and nextpnr's for ECP5, nextpnr's for iCE40, Gowin's."""
NAMES = tuple(f"board{suffix}" for suffix in SUFFIXES)


@dataclass(frozen=True)
class ConstraintFile:
    """``name``: ``board`` and the vendor's suffix. ``resources``: what has pins in it, by the names of amaranth-boards.
    ``clock_mhz``: of the oscillator, which the file constrains where its format can."""

    name: str
    text: str
    resources: tuple[str, ...]
    clock_mhz: float


def load_platform(board: Board, *, where: str = "--constraints") -> Any:
    """The Amaranth platform of ``board``.

    Raises InputError when amaranth-boards does not have the board, or is not installed.
    """
    if board.amaranth is None:
        raise InputError("no pins are known of this board", where=where, value=board.name,
                         allowed="boards that name theirs in amaranth-boards (`nearmac boards NAME`: pins)")
    module, _, name = board.amaranth.partition(":")
    try:
        import_module("amaranth_boards")
    except ImportError:
        raise InputError("pins come from amaranth-boards, which is not installed", where=where,
                         suggestion="pip install 'nearmac[boards]'") from None
    try:
        return getattr(import_module(f"amaranth_boards.{module}"), name)()
    except (ImportError, AttributeError):
        raise InputError("this amaranth-boards has no such board", where=f"{where}: {board.name}: amaranth",
                         value=board.amaranth) from None


def constraint_file(board: Board, *, where: str = "--constraints") -> ConstraintFile:
    """Pins of the board's clock with its rate, of its reset where it has one, and of its first UART, which can carry the host link.

    Ports are named as Amaranth names them (``clk100_0__io``, ``uart_0__rx__io``). Raises InputError: see :func:`load_platform`.
    """
    platform = load_platform(board, where=where)
    top = _Pins(platform)
    plan = platform.build(top, name="board", do_build=False)
    (name,) = (name for name in plan.files if name in NAMES)
    text = plan.files[name]
    text = text.decode() if isinstance(text, bytes) else text
    return ConstraintFile(name, _tidy(text), tuple(top.resources), platform.default_clk_frequency / 1e6)


def _tidy(text: str) -> str:
    """Without the remarks of the tool that wrote it, and without its blanks."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("# Automatically", "// Automatically", "# (add_"))) + "\n"


class _Pins(Elaboratable):
    """Something that uses the pins, so that they are in the file."""

    def __init__(self, platform: Any) -> None:
        self.resources = [platform.default_clk, *([platform.default_rst] if platform.default_rst else [])]
        if ("uart", 0) in platform.resources:
            self.resources.append("uart")

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.domains.sync = ClockDomain()
        m.submodules.clock = clock = io.Buffer("i", platform.request(platform.default_clk, dir="-"))
        m.d.comb += ClockSignal().eq(clock.i)
        if platform.default_rst:
            m.submodules.reset = reset = io.Buffer("i", platform.request(platform.default_rst, dir="-"))
            m.d.comb += ResetSignal().eq(reset.i)
        state = Signal()
        if "uart" in self.resources:
            uart = platform.request("uart", dir="-")
            m.submodules.receive, m.submodules.send = receive, send = io.Buffer("i", uart.rx), io.Buffer("o", uart.tx)
            m.d.sync += state.eq(receive.i)
            m.d.comb += send.o.eq(state)
        else:
            m.d.sync += state.eq(~state)
        return m
