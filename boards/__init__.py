"""What devices and boards offer: figures with their sources, and the loader of their YAML files."""

from boards.errors import InputError
from boards.loader import board_from_mapping, list_boards, list_devices, load_board, load_device
from boards.schema import BUS_BITS, Board, Ceilings, Device, Figure, Memory, Trust

__all__ = ["BUS_BITS", "Board", "Ceilings", "Device", "Figure", "InputError", "Memory", "Trust", "board_from_mapping",
           "list_boards", "list_devices", "load_board", "load_device"]
