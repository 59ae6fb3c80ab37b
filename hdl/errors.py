"""Bad user input, as every package reports it."""

from boards.errors import InputError, nearest

__all__ = ["InputError", "nearest"]
