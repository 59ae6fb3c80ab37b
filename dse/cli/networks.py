"""``nearmac networks``: what is built in, and what each network is made of."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import options as opt


def networks(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False, help=(
        "Layers of one: a network's name, or the path of your own .yaml."))] = None,
    precision: Annotated[str | None, typer.Option("--precision", metavar="wNaM", show_default=False, help=(
        "Weight and activation bits, each 1, 2, 4, 8 or 16. Default: the network's own, else w8a8."))] = None,
    json: opt.Json = False,
) -> int:
    """List the networks, or show the layers of one: MACs, weights, activations, operations for each byte."""
    from dse.cli import network_tables
    from dse.cli.console import print_json, print_tables
    from dse.workload.zoo import NAMES, load_network

    bits = _bits(precision)
    if name is not None:
        from dse.workload.line import lines
        from dse.workload.load import load_whole_network

        network = load_whole_network(name, *bits)
        if json:
            print_json({**network.to_dict(), "lines": lines(network)})
        else:
            print_tables(*network_tables.detail_tables(network))
        return 0
    every = [load_network(known, *bits) for known in NAMES]
    if json:
        print_json({"networks": [network.summary() for network in every]})
    else:
        print_tables(network_tables.overview(every))
    return 0


def _bits(precision: str | None) -> tuple[int | None, int | None]:
    """Weight and activation bits, ``None`` for a network's own."""
    if precision is None:
        return None, None
    from hdl.design import parse_precision  # not at once: it takes the hardware library along

    return parse_precision(precision)
