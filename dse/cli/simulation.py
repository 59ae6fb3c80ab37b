"""What ``nearmac simulate`` does, once its arguments are there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rich.console import RenderableType

from boards.errors import InputError
from boards.loader import load_board
from dse.cli import scalesim
from dse.cli.console import Reporter, print_json, print_tables
from dse.cli.design_options import DesignOptions, check_seed, moved, one_of
from dse.cli.files import OutputFile
from dse.cli.simulation_table import simulation_tables
from dse.cli.tensors import complete_tensors, load_arrays, save_tensors
from dse.cli.workload import check_size, read_workload
from dse.simulate import simulate
from sim.engine import ENGINES

DEFAULT_WINDOW = (0, 10_000)


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where results go: files (``None``: not written) and JSON or tables on stdout."""

    vcd: str | None = None
    vcd_cycles: str | None = None
    save_tensors: str | None = None
    json: bool = False


def run(workload: str, layer_name: str | None, board_name: str, options: DesignOptions, outputs: Outputs, *, engine: str,
        input_path: str | None, stall_seed: int | None, seed: int, input_shapes: Mapping[str, Sequence[int]] | None = None) -> int:
    """Check everything that can be wrong, choose, simulate, write; the exit status. Raises InputError and what engines raise."""
    one_of(engine, ENGINES, where="--engine")
    check_seed(seed)
    check_seed(stall_seed, where="--stall-seed")
    window = parse_window(outputs.vcd_cycles, outputs.vcd)
    layer = read_workload(workload, layer_name, input_shapes)
    check_size(layer)
    board = load_board(board_name)
    parsed = options.parse()
    arrays = None if input_path is None else load_arrays(input_path, layer)
    with file_outputs(outputs) as (vcd, saved):
        with Reporter() as reporter:
            reporter.stage("choosing the mapping" if parsed.design else "choosing the design")
            choice = parsed.choose(layer, board)
            design = choice.plan.design
            tensors = None if arrays is None else complete_tensors(arrays, design, layer, seed, input_path or "")
            reporter.stage("preparing the simulation")
            total = choice.prediction.cycles if stall_seed is None else None
            # The waveforms are written under another name at first; nobody needs to see that one.
            said = (lambda text: reporter.notify(text.replace(str(vcd.temporary), vcd.path))) if vcd else reporter.notify
            try:
                report, results = simulate(
                    layer, board, choice, workload=workload, engine=engine, seed=seed, tensors=tensors, stall_seed=stall_seed,
                    vcd=vcd.temporary if vcd else None, vcd_cycles=window, progress=reporter.counter("simulating", total),
                    notify=said)
            except InputError as error:
                if vcd and error.where == "--vcd":
                    raise InputError(error.what, where="--vcd", value=vcd.path) from None
                raise moved(error, parsed.place(error.where or "")) from None
            except OSError as error:
                if vcd and error.filename in (None, str(vcd.temporary)):
                    raise vcd.unwritable(error) from None
                raise
            if vcd:
                vcd.commit()
            if saved:
                save_tensors(results, saved)
    data = report.to_dict()
    tables: list[RenderableType] = [*simulation_tables(report, board)]
    if parsed.scalesim:
        counts = scalesim.layer_counts(parsed.scalesim, layer)
        data["scale_sim"] = scalesim.counts_json(parsed.scalesim, counts)
        tables.append(scalesim.counts_table(parsed.scalesim, counts, {layer.name: report.cycles}))
        scalesim.remark_on(parsed.scalesim)
    if outputs.json:
        print_json(data)
    else:
        print_tables(*tables)
    if report.matches:
        return 0
    print("error: the simulation does not match the prediction or the golden model", file=sys.stderr)
    return 1


@contextmanager
def file_outputs(outputs: Outputs) -> Iterator[tuple[OutputFile | None, OutputFile | None]]:
    """The files of ``--vcd`` and ``--save-tensors``, ready to be written. Raises InputError."""
    with ExitStack() as stack:
        vcd, saved = (None if path is None else stack.enter_context(OutputFile(path, option=option))
                      for path, option in ((outputs.vcd, "--vcd"), (outputs.save_tensors, "--save-tensors")))
        if vcd and saved and vcd.same_as(saved):
            raise InputError("the file that --vcd names", where="--save-tensors", value=saved.path, suggestion="give another name")
        yield vcd, saved


def parse_window(text: str | None, vcd: str | None) -> tuple[int, int]:
    """``"100:200"`` -> the cycles [100, 200) of ``--vcd-cycles``."""
    if text is None:
        return DEFAULT_WINDOW
    if vcd is None:
        raise InputError("given without --vcd", where="--vcd-cycles", value=text)
    match = re.fullmatch(r"([0-9]{1,18}):([0-9]{1,18})", text)
    if not match or int(match[1]) >= int(match[2]):
        raise InputError("not a window of cycles", where="--vcd-cycles", value=text, allowed="START:STOP with START below STOP",
                         suggestion="for example 0:10000")
    return int(match[1]), int(match[2])
