"""What devices and boards offer: figures with their sources, and the loader of their YAML files.

The names are imported when they are first asked for: errors alone, which every package uses, do not need the schema's library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boards.errors import InputError
    from boards.loader import board_from_mapping, list_boards, list_devices, load_board, load_device
    from boards.schema import BUS_BITS, Board, Ceilings, Device, Figure, Memory, Trust

__all__ = ["BUS_BITS", "Board", "Ceilings", "Device", "Figure", "InputError", "Memory", "Trust", "board_from_mapping",
           "list_boards", "list_devices", "load_board", "load_device"]

_HOMES = {"InputError": "errors",
          **dict.fromkeys(("board_from_mapping", "list_boards", "list_devices", "load_board", "load_device"), "loader"),
          **dict.fromkeys(("BUS_BITS", "Board", "Ceilings", "Device", "Figure", "Memory", "Trust"), "schema")}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"boards.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
