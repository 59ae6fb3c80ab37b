"""What ``nearmac export`` does, once its arguments are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from boards.errors import InputError
from dse.cli.console import print_json, print_remarks, print_tables
from dse.cli.files import OutputFile
from dse.cli.simulation_table import rows_table
from dse.cli.workload import layer_operator
from dse.workload.interop.export import Export, export
from dse.workload.load import load_workload
from dse.workload.network import Network
from dse.workload.operators import unknown
from hdl.design import parse_precision


def run(workload: str, layer_name: str | None, precision: str | None, format: str, out: str, *, json: bool,
        input_shapes: Mapping[str, Sequence[int]] | None = None) -> int:
    """Load, write, say what was written in another way; the exit status. Raises InputError."""
    bits = (None, None) if precision is None else parse_precision(precision)
    found = load_workload(workload, bits[0], bits[1], input_shapes)
    weight_bits, activation_bits = (bit or 8 for bit in bits)
    if isinstance(found, Network):
        print_remarks(found.remarks)
        if layer_name is not None:
            node = layer_operator(found, layer_name)
            found, weight_bits, activation_bits = node.layer, node.weight_bits, node.activation_bits
    elif layer_name not in (None, found.name):
        raise unknown("no such layer in the workload", layer_name, [found.name], where="--layer")
    made = export(found, format, weight_bits=weight_bits, activation_bits=activation_bits)
    written = _write(made, out)
    print_remarks(made.notes)
    if json:
        print_json({"workload": found.name, "format": format, "files": written, "layers": made.layers, "notes": made.notes})
    else:
        files = written[0] if len(written) == 1 else f"{len(written)} files in {out}"
        print_tables(rows_table("Export", [("workload", found.name), ("format", format), ("layers", f"{made.layers:,}"),
                                           ("written", files)]))
    return 0


def _write(made: Export, out: str) -> list[str]:
    """One file at ``out`` or below it; several in a new or empty directory. The paths."""
    if not out:
        raise InputError("empty", where="--out", value=out, allowed="a file or a directory")
    path = Path(out)
    try:
        if len(made.files) > 1:
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise InputError(f"{len(made.files)} files need a new or empty directory", where="--out", value=out)
        paths = {path / name if path.is_dir() else path: text for name, text in made.files.items()}
    except (OSError, ValueError) as error:  # ValueError: a null character
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot be written: {getattr(error, 'strerror', None) or error}", where="--out", value=out) from None
    for target, text in paths.items():
        with OutputFile(str(target), option="--out") as file:
            file.temporary.write_text(text, encoding="utf-8")
            file.commit()
    return [str(target) for target in paths]
