"""``nearmac networks``: what is built in, and what each network is made of."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import options as opt


def networks(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False, help=(
        "Layers of one: a network's name, or the path of an .onnx, a network, ZigZag or Timeloop .yaml or a SCALE-Sim .csv."))] = None,
    precision: Annotated[str | None, typer.Option("--precision", metavar="wNaM", show_default=False, help=(
        "Weight and activation bits, each 1, 2, 4, 8 or 16. Default: the network's own, else w8a8."))] = None,
    input_shape: opt.InputShapes = None,
    scalesim_config: Annotated[str | None, typer.Option("--scalesim-config", metavar="FILE", show_default=False, help=(
        "A SCALE-Sim .cfg: show SCALE-Sim's own count of cycles too."))] = None,
    json: opt.Json = False,
) -> int:
    """List the networks, or show the layers of one: MACs, weights, activations, operations for each byte."""
    from dse.cli import network_tables
    from dse.cli.console import print_json, print_remarks, print_tables
    from dse.workload.zoo import NAMES, load_network

    bits = _bits(precision)
    if name is not None:
        from dse.workload.line import lines
        from dse.workload.load import load_whole_network

        network = load_whole_network(name, *bits, opt.parse_input_shapes(input_shape))
        data, tables = {**network.to_dict(), "lines": lines(network)}, network_tables.detail_tables(network)
        if scalesim_config is not None:
            from dse.cli import scalesim
            from dse.workload.interop.scalesim_config import load_config

            config = load_config(scalesim_config)
            counts = config.counts(network)
            data["scale_sim"] = scalesim.counts_json(config, counts)
            tables.append(scalesim.counts_table(config, counts))
            scalesim.remark_on(config)
        print_remarks(network.remarks)
        if json:
            print_json(data)
        else:
            print_tables(*tables)
        return 0
    if scalesim_config is not None:
        from boards.errors import InputError

        raise InputError("is of one network", where="--scalesim-config", value=scalesim_config, suggestion="name a network")
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
