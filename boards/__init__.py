"""What devices and boards offer: figures with their sources, and the loader of their YAML files.

The names are imported when they are first asked for: errors alone, which every package uses, do not need the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boards.errors import InputError
    from boards.figures import Figure, Trust
    from boards.loader import board_from_mapping, list_boards, list_devices, list_machines, load_board, load_device, load_machine
    from boards.machine import Machine
    from boards.primitives import DspKind, Family, RamKind
    from boards.schema import BUS_BITS, Board, Ceilings, Device, Memory

__all__ = ["BUS_BITS", "Board", "Ceilings", "Device", "DspKind", "Family", "Figure", "InputError", "Machine", "Memory", "RamKind", "Trust",
           "board_from_mapping", "list_boards", "list_devices", "list_machines", "load_board", "load_device", "load_machine"]

_HOMES = {"InputError": "errors", "Machine": "machine",
          **dict.fromkeys(("Figure", "Trust"), "figures"), **dict.fromkeys(("DspKind", "Family", "RamKind"), "primitives"),
          **dict.fromkeys(("board_from_mapping", "list_boards", "list_devices", "list_machines"), "loader"),
          **dict.fromkeys(("load_board", "load_device", "load_machine"), "loader"),
          **dict.fromkeys(("BUS_BITS", "Board", "Ceilings", "Device", "Memory"), "schema")}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"boards.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
