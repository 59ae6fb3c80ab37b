"""``nearmac boards``: what is known of each board and reference machine, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dse.cli import options as opt

if TYPE_CHECKING:
    from boards.schema import Board

Family = Annotated[str | None, typer.Option("--family", metavar="NAME", show_default=False, help=(
    "Only boards of a family: xc6s, xc7, xcup, ecp5, ice40 or gowin."))]
Device = Annotated[str | None, typer.Option("--device", metavar="NAME", show_default=False, help="Only boards with this device.")]


def boards(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False, help=(
        "Details of one: a board's or reference machine's name, or the path of your own board's .yaml."))] = None,
    family: Family = None,
    device: Device = None,
    json: opt.Json = False,
) -> int:
    """List the boards by family, and the machines to compare them with; or show one with the source of every figure and how far it is to be
    trusted."""
    from boards.loader import list_machines, load_board, load_machine
    from dse.cli import board_values
    from dse.cli.console import print_json, print_tables, print_text

    if name is None:
        chosen = _chosen(family, device)
        machines = [load_machine(known) for known in list_machines()] if family is None and device is None else []
        if json:
            print_json({"boards": [board_values.summary(board) for board in chosen],
                        "machines": [board_values.machine_details(machine) for machine in machines]})
        else:
            from dse.cli.board_list import machine_overview, overview

            print_text("\n".join([overview(chosen), *([machine_overview(machines)] if machines else [])]))
        return 0
    if family is not None or device is not None:
        from boards.errors import InputError

        raise InputError("given together with the name of a board", where="--family" if family is not None else "--device",
                         value=family if family is not None else device, suggestion="give one of them")
    if name in list_machines():
        machine = load_machine(name)
        if json:
            print_json(board_values.machine_details(machine))
        else:
            from dse.cli.board_tables import machine_tables

            print_tables(*machine_tables(machine))
        return 0
    board = load_board(name)
    if json:
        print_json(board_values.details(board))
    else:
        from dse.cli.board_tables import detail_tables

        print_tables(*detail_tables(board))
    return 0


def _chosen(family: str | None, device: str | None) -> list[Board]:
    """The boards of a family and device, or all."""
    from boards.errors import InputError, nearest
    from boards.loader import list_boards, list_devices, load_board
    from boards.primitives import Family

    for where, value, known in (("--family", family, tuple(Family)), ("--device", device, list_devices())):
        if value is not None and value not in known:
            near = nearest(value.lower(), known)
            raise InputError(f"unknown {where[2:]}", where=where, value=value, allowed=", ".join(known),
                             suggestion=f"nearest: {near}" if near else None)
    every = [load_board(known) for known in list_boards()]
    chosen = [board for board in every if family in (None, board.device.family) and device in (None, board.device.name)]
    if not chosen:
        raise InputError("no built-in board has it", where="--device", value=device,
                         suggestion=f"name it in a board's file of your own (device: {device})" if family is None else "leave out --family")
    return chosen
