"""``nearmac boards``: what is known of each board, and how."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import options as opt


def boards(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False, help=(
        "Details of one: a board's name, or the path of your own .yaml."))] = None,
    json: opt.Json = False,
) -> int:
    """List the boards, or show one with the source of every figure and how far it is to be trusted."""
    from boards.loader import list_boards, load_board
    from dse.cli import board_tables
    from dse.cli.console import print_json, print_tables

    if name is None:
        every = [load_board(known) for known in list_boards()]
        if json:
            print_json({"boards": [board_tables.summary(board) for board in every]})
        else:
            print_tables(board_tables.overview(every))
        return 0
    board = load_board(name)
    if json:
        print_json(board_tables.details(board))
    else:
        print_tables(*board_tables.detail_tables(board))
    return 0
