"""Emission: a directory with the accelerator's Verilog, and a test bench that runs a layer, or a chain of them, on it and checks
everything."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.fidelity.chains import chain_tensors
from dse.readme import readme_text
from dse.schedule.chain import ChainPrediction, ChainRun, pack_chain, predict_chain
from dse.schedule.compiler import Program, compile_program
from dse.schedule.packing import encode_elements, pack_memory
from dse.schedule.predict import Prediction, predict
from dse.schedule.tiling import TilePlan, Tiling
from dse.workload.layer_file import dump_design, dump_layer
from dse.workload.network import Network
from dse.workload.network_file import dump_network
from hdl.design import Design
from hdl.layer import Layer
from hdl.pins import NAMES as PIN_FILES
from hdl.pins import ConstraintFile
from hdl.testbench import MAIN, RUN, TestBench, hex_text
from hdl.verilog import verilog_text
from sim.golden import LayerTensors, golden, random_tensors
from sim.memory import MemoryTiming

FILES = ("accelerator.v", "testbench.v", "main.cpp", "image.hex", "expected.hex", "design.yaml", "layer.yaml", "run.sh",
         "README.md")
"""Of one layer; a chain of layers has network.yaml in place of layer.yaml."""
OURS = {*FILES, "network.yaml", *PIN_FILES}
UNFINISHED = ".nearmac-"  # a directory with this prefix is what an emission that was killed left


@dataclass(frozen=True)
class EmitReport:
    """What was emitted.

    ``files``: paths, in the order of :data:`FILES`, then the constraint file if there is one. ``verilog_lines``, ``verilog_bytes``: of
    accelerator.v. ``expected_cycles``, ``beats_read``, ``beats_written``: what the test bench wants to see. ``memory_bytes``: external
    memory of the layer.
    """

    directory: Path
    files: tuple[Path, ...]
    verilog_lines: int
    verilog_bytes: int
    expected_cycles: int
    beats_read: int
    beats_written: int
    memory_bytes: int


def emit(design: Design, layer: Layer, tiling: Tiling, timing: MemoryTiming, out_dir: str | Path, *, seed: int = 0,
         tensors: LayerTensors | None = None, board: str | None = None, pins: ConstraintFile | None = None) -> EmitReport:
    """Write accelerator, test bench, memory image, expected output and README to ``out_dir``.

    A directory that is not there is made; one that is there must hold nothing but an earlier emission, which is replaced. No file
    is ever seen under its final name before it is whole.

    Parameters
    ----------
    timing: of the memory that the test bench models.
    seed: of the random tensors, when ``tensors`` does not give them.
    board: name of the board that the design is for, for the README.
    pins: the board's constraint file (:func:`hdl.pins.constraint_file`), to be written with the rest.

    Raises
    ------
    InputError: the directory cannot be written, or holds something else. IllegalTiling: see :class:`TilePlan`.
    """
    out = Path(out_dir)
    check_directory(out)
    plan = TilePlan(design, layer, tiling)
    program = compile_program(plan)
    if tensors is None:
        tensors = random_tensors(design, layer, seed)
    return _emit(out, [plan], [program], predict(plan, program, timing), pack_memory(plan, program, tensors),
                 golden(design, layer, tensors), timing, board, pins, {"layer.yaml": dump_layer(layer)})


def emit_chain(chain: ChainRun, network: Network, timing: MemoryTiming, out_dir: str | Path, *, seed: int = 0,
               board: str | None = None, pins: ConstraintFile | None = None) -> EmitReport:
    """The same for layers that run from one start: their programs follow each other in memory, the tensors between them stay on chip.

    ``network``: the layers, as `network.yaml` is to have them.
    """
    out = Path(out_dir)
    check_directory(out)
    tensors = chain_tensors(chain.design, chain.layers, seed)
    return _emit(out, chain.plans, chain.programs, predict_chain(chain, timing), pack_chain(chain, tensors),
                 golden(chain.design, chain.layers[-1], tensors[-1]), timing, board, pins, {"network.yaml": dump_network(network)})


def _emit(out: Path, plans: Sequence[TilePlan], programs: Sequence[Program], prediction: Prediction | ChainPrediction,
          image: NDArray[np.uint8], output: NDArray[np.int64], timing: MemoryTiming, board: str | None,
          pins: ConstraintFile | None, workload: dict[str, str]) -> EmitReport:
    """``workload``: the file that says what runs, by its name."""
    design, first, memory = plans[0].design, programs[0], programs[-1].memory
    bus_bytes = design.bus_bits // 8
    bench = TestBench(
        program_address=first.memory.program.address, program_beats=first.beats, output_address=memory.output.address,
        output_beats=memory.output.beats, latency_cycles=timing.latency_cycles, num=timing.num, den=timing.den,
        cycles=prediction.cycles, beats_read=prediction.beats_read, beats_written=prediction.beats_written,
        issue_cycles=prediction.issue_cycles)
    (workload_file,) = workload
    verilog = verilog_text(design)
    texts = {
        "accelerator.v": verilog,
        "testbench.v": bench.verilog(design),
        "image.hex": hex_text(image[:memory.output.address * bus_bytes], design.bus_bits),
        "expected.hex": hex_text(pack_output(plans[-1], output), design.bus_bits),
        "design.yaml": dump_design(design),
        **workload,
        "main.cpp": MAIN,
        "run.sh": RUN,
        "README.md": readme_text(plans, programs, prediction, timing, board, workload_file, pins),
        **({pins.name: pins.text} if pins else {}),
    }
    names = [workload_file if name == "layer.yaml" else name for name in FILES] + ([pins.name] if pins else [])
    _write(out, {name: texts[name] for name in names})
    return EmitReport(
        directory=out, files=tuple(out / name for name in names), verilog_lines=verilog.count("\n"),
        verilog_bytes=len(verilog.encode()), expected_cycles=prediction.cycles, beats_read=prediction.beats_read,
        beats_written=prediction.beats_written, memory_bytes=memory.beats * bus_bytes)


def pack_output(plan: TilePlan, output: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The output region as the accelerator leaves it, from an output tensor (B, K, OY, OX): words of ``cols`` elements, each
    padded to its slot and each pixel to whole beats, all padding zero. The inverse of
    :func:`dse.schedule.packing.unpack_output`."""
    design, layer = plan.design, plan.layer
    bits, cols = design.activation_bits, design.cols
    slot = design.word_slot_bits("output") // bits
    pixels = layer.B * layer.OY * layer.OX
    words = plan.output_pixel_beats * design.bus_bits // design.word_slot_bits("output")
    channels = np.zeros((pixels, words * cols), np.uint16)
    channels[:, :layer.K] = encode_elements(output, bits).transpose(0, 2, 3, 1).reshape(pixels, layer.K)
    elements = np.zeros((pixels, words, slot), np.uint16)
    elements[:, :, :cols] = channels.reshape(pixels, words, cols)
    single = elements.reshape(-1, 1) >> np.arange(bits, dtype=np.uint16) & 1
    return np.packbits(single.astype(np.uint8), bitorder="little")


def check_directory(out: Path) -> None:
    """Refuse, before any work, what could not be written or would mix with other files."""
    try:
        if out.exists() and not out.is_dir():
            raise InputError("not a directory", where="--out", value=str(out))
        present = sorted(os.listdir(out)) if out.exists() else []
    except OSError as error:
        raise _unwritable(out, error) from None
    foreign = [name for name in present if name not in OURS and not name.startswith(UNFINISHED)]
    if foreign:
        raise InputError(f"the directory holds other files: {foreign[0]}", where="--out", value=str(out),
                         allowed="a new or empty directory, or one that was emitted before")


def _write(out: Path, texts: dict[str, str]) -> None:
    """All files under other names first; then a new directory appears at once, or its files are replaced one by one."""
    work: Path | None = None
    made: list[Path] = []
    try:
        fresh = not out.exists()
        beside = out.absolute().parent if fresh else out
        for parent in reversed([beside, *beside.parents]):
            if not parent.exists():
                parent.mkdir(exist_ok=True)
                made.append(parent)
        for name in [] if fresh else os.listdir(out):
            if name.startswith(UNFINISHED):
                shutil.rmtree(out / name, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=beside))
        for name, text in texts.items():
            path = work / name
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())  # some file systems report a full disk only here
            if name.endswith(".sh"):
                path.chmod(0o755)
        if fresh:
            work.chmod(0o777 & ~_umask())
            work.rename(out.absolute())
            work = None
        else:
            for name in texts:
                os.replace(work / name, out / name)
            for name in OURS - texts.keys():  # of an emission of another kind
                (out / name).unlink(missing_ok=True)
        made = []
    except OSError as error:
        raise _unwritable(out, error) from None
    finally:
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)
        for parent in reversed(made):
            if parent.exists() and not any(parent.iterdir()):
                parent.rmdir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _unwritable(out: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written: {error.strerror or error}", where="--out", value=str(out))
