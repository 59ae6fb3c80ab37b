"""Devices, boards and reference machines by name, and boards from a user's own YAML file.

The built-in files are taken as they are, for the tests check them; a user's file is checked in full.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from boards.errors import InputError, nearest
from boards.machine import Machine
from boards.plain import from_mapping, to_mapping
from boards.schema import Board, Device
from boards.strict_yaml import read_mapping

_HERE = Path(__file__).parent
_SUFFIXES = (".yaml", ".yml")


@cache
def list_devices() -> tuple[str, ...]:
    """Names of the built-in devices, smaller numbers first."""
    return _names("devices")


@cache
def list_boards() -> tuple[str, ...]:
    """Names of the built-in boards in alphabetical order, smaller numbers first."""
    return _names("profiles")


@cache
def list_machines() -> tuple[str, ...]:
    """Names of the reference machines in alphabetical order, smaller numbers first."""
    return _names("machines")


def load_device(name: str) -> Device:
    """The built-in device ``name``, such as ``"xc6slx9"``."""
    return _load_device(name, where="device")


def load_board(name_or_path: str | os.PathLike[str]) -> Board:
    """A built-in board (``"papilio-pro"``), or one from a file (``"./my.yaml"``).

    A text with a path separator or the suffix .yaml or .yml is a file. Such a file names a built-in device or holds its own
    under ``device:``. Raises :class:`InputError` for whatever is wrong with it.
    """
    if isinstance(name_or_path, os.PathLike):
        return _load_file(Path(name_or_path))
    if not isinstance(name_or_path, str) or not name_or_path:
        raise InputError("not a board", where="--board", value=name_or_path, allowed="a board's name or the path of a YAML file",
                         suggestion="list them with `nearmac boards`")
    if name_or_path in list_boards():
        return _load_builtin_board(name_or_path)
    if is_path(name_or_path):
        return _load_file(Path(name_or_path))
    if name_or_path in list_machines():
        raise InputError(f"{name_or_path} is a reference machine: it has no FPGA to build a design on", where="--board", value=name_or_path,
                         suggestion="choose a board of `nearmac boards`")
    raise InputError("unknown board", where="--board", value=name_or_path, allowed=", ".join(list_boards()),
                     suggestion=_nearest_board(name_or_path) or "or the path of a YAML file: ./my.yaml")


def load_machine(name_or_path: str | os.PathLike[str]) -> Machine:
    """A reference machine (``"dgx-1"``), or one from a file. Raises :class:`InputError`."""
    if isinstance(name_or_path, str) and name_or_path in list_machines():
        return _load_builtin_machine(name_or_path)
    if isinstance(name_or_path, os.PathLike) or is_path(str(name_or_path)):
        from boards.validation import validate

        return validate(Machine, read_mapping(Path(name_or_path)), where=str(name_or_path))
    near = nearest(str(name_or_path).lower(), list_machines())
    raise InputError("unknown machine", where="machine", value=name_or_path, allowed=", ".join(list_machines()),
                     suggestion=f"nearest: {near}" if near else None)


def is_path(text: str) -> bool:
    """Whether ``text`` is a file's name, not a board's."""
    return text.lower().endswith(_SUFFIXES) or "/" in text or os.sep in text


def _nearest_board(name: str) -> str | None:
    near = nearest(name.lower().replace("_", "-").replace(" ", "-"), list_boards())
    return f"nearest: {near}" if near else None


@cache
def _load_builtin_board(name: str) -> Board:
    data = read_mapping(_HERE / "profiles" / f"{name}.yaml")
    return from_mapping(Board, {**data, "device": _load_builtin_device(data["device"])})


@cache
def _load_builtin_device(name: str) -> Device:
    return from_mapping(Device, read_mapping(_HERE / "devices" / f"{name}.yaml"))


@cache
def _load_builtin_machine(name: str) -> Machine:
    return from_mapping(Machine, read_mapping(_HERE / "machines" / f"{name}.yaml"))


def _load_file(path: Path) -> Board:
    try:
        data = read_mapping(path)
    except InputError as error:
        near = _nearest_board(path.stem) if error.what == "no such file" else None
        if near is None:
            raise
        raise InputError(error.what, where=error.where, suggestion=f"{near} (a built-in board)") from None
    return board_from_mapping(data, where=str(path))


def board_from_mapping(data: dict[str, Any], *, where: str) -> Board:
    """A board from the mapping that its file holds; ``where`` names it in errors."""
    from boards.validation import validate

    if not isinstance(data.get("device", {}), dict):
        data = {**data, "device": to_mapping(_load_device(data["device"], where=f"{where}: device"))}
    return validate(Board, data, where=where)


def _load_device(name: object, *, where: str) -> Device:
    if not isinstance(name, str) or name not in list_devices():
        near = nearest(str(name).lower(), list_devices())
        raise InputError("unknown device", where=where, value=name, allowed=", ".join(list_devices()),
                         suggestion=f"nearest: {near}" if near else "or a mapping with the device's own figures")
    return _load_builtin_device(name)


def _names(folder: str) -> tuple[str, ...]:
    names = [path.stem for path in (_HERE / folder).glob("*.yaml")]
    return tuple(sorted(names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]))
