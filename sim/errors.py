"""What can go wrong in a run that is not the user's input: the hardware stops short, or an external tool fails."""

from __future__ import annotations

from hdl.errors import ToolError

__all__ = ["SimulationError", "ToolError", "bad_burst", "error_port", "not_done"]


class SimulationError(RuntimeError):
    """The simulated hardware did not finish, or broke the rules of the memory channel."""


def not_done(*, max_cycles: int, started: bool, busy: bool, beats_read: int, beats_written: int, queued: int) -> SimulationError:
    """``max_cycles`` were simulated and the run is not over."""
    state = "busy" if busy else "idle"
    begun = f"{state}, {beats_read} beats read, {beats_written} beats written, {queued} bursts queued in memory"
    return SimulationError(f"not done after {max_cycles} cycles: accelerator {begun if started else 'never accepted start'}")


def error_port(*, cycle: int) -> SimulationError:
    """The accelerator's ``error`` port is high."""
    return SimulationError(f"the accelerator raised its error port in cycle {cycle}: the program's version is not the hardware's")


def bad_burst(*, address: int, length: int, image_beats: int) -> SimulationError:
    """A burst is empty or leaves the memory image."""
    what = "an empty burst" if length == 0 else f"a burst of {length} beats"
    return SimulationError(f"the accelerator requested {what} at beat {address:#x}; the memory image has {image_beats} beats")
