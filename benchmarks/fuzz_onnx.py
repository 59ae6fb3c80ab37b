"""Damaged ONNX files: each must be read or refused with one message, whatever is wrong with it.

    python benchmarks/fuzz_onnx.py 100000

Every input is a small model with something changed: bytes flipped, cut, doubled or overwritten; or, one level up, an attribute, a size, a
name or an edge replaced by an impossible one. A child process reads them, so that a crash of the libraries below would be found and
counted too. Prints how many were read, refused, and what else happened.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

CHUNK = 500
SLOW_S = 10.0
MEMORY_BYTES = 3 << 30  # of a child: what takes more is a bomb
EDGES = (0, 1, -1, 2, 3, 127, 255, 4096, 65536, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 62) - 1, -(1 << 62))


def constant(name: str, array: np.ndarray) -> TensorProto:
    return numpy_helper.from_array(array, name)


def value(name: str, shape: tuple[int, ...], kind: int = TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def models() -> list[ModelProto]:
    """Small models that use every family of operators."""
    f, rng = np.float32, np.random.default_rng(0)
    weight = rng.normal(size=(4, 3, 3, 3)).astype(f)
    node = helper.make_node
    convolutional = helper.make_graph(
        [
            node("Conv", ["x", "w", "b"], ["c"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 1], dilations=[1, 1], group=1),
            node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"], "norm"),
            node("Relu", ["n"], ["r"], "relu"),
            node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
            node("Shape", ["p"], ["shape"]),
            node("Constant", [], ["zero"], value=constant("", np.array(0, np.int64))),
            node("Gather", ["shape", "zero"], ["batch"]),
            node("Unsqueeze", ["batch", "axis"], ["first"]),
            node("Concat", ["first", "rest"], ["size"], axis=0),
            node("Reshape", ["p", "size"], ["f"], "flat"),
            node("Gemm", ["f", "fw", "fb"], ["y"], "fc", transB=1),
            node("Softmax", ["y"], ["z"]),
        ],
        "convolutional",
        [value("x", (1, 3, 8, 8))],
        [value("z", (1, 5))],
        [
            constant("w", weight),
            constant("b", np.ones(4, f)),
            constant("s", np.ones(4, f)),
            constant("m", np.zeros(4, f)),
            constant("v", np.ones(4, f)),
            constant("axis", np.array([0], np.int64)),
            constant("rest", np.array([-1], np.int64)),
            constant("fw", rng.normal(size=(5, 32)).astype(f)),
            constant("fb", np.ones(5, f)),
        ],
    )
    quantised = helper.make_graph(
        [
            node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
            node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
            node("DequantizeLinear", ["qw", "ws", "wz"], ["w"], axis=0),
            node("Conv", ["d", "w"], ["c"], "conv", auto_pad="SAME_UPPER"),
            node("Clip", ["c", "lo", "hi"], ["r"]),
            node("QuantizeLinear", ["r", "xs", "xz"], ["rq"]),
            node("QLinearConv", ["rq", "xs", "xz", "qw2", "xs", "xz", "xs", "xz"], ["y"], "qconv"),
        ],
        "quantised",
        [value("x", (1, 3, 6, 6))],
        [value("y", (1, 2, 6, 6), TensorProto.UINT8)],
        [
            constant("xs", np.array(0.1, f)),
            constant("xz", np.array(3, np.uint8)),
            constant("qw", rng.integers(-9, 9, (4, 3, 3, 3), np.int8)),
            constant("ws", np.ones(4, f)),
            constant("wz", np.zeros(4, np.int8)),
            constant("lo", np.array(0, f)),
            constant("hi", np.array(6, f)),
            constant("qw2", rng.integers(0, 9, (2, 4, 1, 1), np.uint8)),
        ],
    )
    recurrent = helper.make_graph(
        [
            node("LSTM", ["x", "w", "r", "b"], ["h", "last"], "lstm", hidden_size=4),
            node("Squeeze", ["h", "one"], ["s"]),
            node("MatMul", ["s", "m"], ["p"], "product"),
            node("Transpose", ["p"], ["t"], perm=[0, 2, 1]),
            node("MatMul", ["p", "t"], ["y"], "attention"),
            node("Split", ["y"], ["a", "c"], axis=2),
        ],
        "recurrent",
        [value("x", (5, 2, 3))],
        [value("a", (5, 2, 1)), value("c", (5, 2, 1)), value("last", (1, 2, 4))],
        [
            constant("w", rng.normal(size=(1, 16, 3)).astype(f)),
            constant("r", rng.normal(size=(1, 16, 4)).astype(f)),
            constant("b", np.zeros((1, 32), f)),
            constant("one", np.array([1], np.int64)),
            constant("m", rng.normal(size=(4, 6)).astype(f)),
        ],
    )
    then = helper.make_graph([node("Conv", ["x", "w"], ["t"])], "then", [], [value("t", (1, 4, 4, 4))])
    other = helper.make_graph([node("Identity", ["k"], ["o"])], "else", [], [value("o", (1, 4, 4, 4))])
    branches = helper.make_graph(
        [
            node("Conv", ["x", "w"], ["k"], "conv"),
            node("If", ["flag"], ["i"], "if", then_branch=then, else_branch=other),
            node("ConvTranspose", ["i", "w2"], ["u"], "up", strides=[2, 2]),
            node("Conv", ["x", "d"], ["g"], "depthwise", group=3),
            node("ConstantOfShape", ["five"], ["d"], value=constant("", np.ones(1, f))),
        ],
        "branches",
        [value("x", (1, 3, 6, 6)), value("flag", (), TensorProto.BOOL)],
        [value("u", (1, 2, 9, 9)), value("g", (1, 3, 4, 4))],
        [
            constant("w", weight),
            constant("w2", rng.normal(size=(4, 2, 2, 2)).astype(f)),
            constant("five", np.array([3, 1, 3, 3], np.int64)),
        ],
    )
    brevitas = helper.make_graph(
        [
            node(
                "Quant",
                ["w", "s", "z", "bits"],
                ["qw"],
                "weights",
                domain="qonnx.custom_op.general",
                signed=1,
                narrow=1,
                rounding_mode="ROUND",
            ),
            node("Quant", ["x", "s", "z", "bits"], ["qx"], domain="qonnx.custom_op.general", signed=0, narrow=0, rounding_mode="ROUND"),
            node("Conv", ["qx", "qw"], ["c"], "conv", pads=[0, 2, 1, 0]),
            node("BipolarQuant", ["c", "s"], ["y"], domain="qonnx.custom_op.general"),
        ],
        "brevitas",
        [value("x", (1, 3, 6, 6))],
        [value("y", (1, 4, 5, 6))],
        [constant("w", weight), constant("s", np.array(0.25, f)), constant("z", np.array(0, f)), constant("bits", np.array(4, f))],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("qonnx.custom_op.general", 1)]
    return [
        helper.make_model(graph, opset_imports=opsets, ir_version=8) for graph in (convolutional, quantised, recurrent, branches, brevitas)
    ]


# -- damage -----------------------------------------------------------------------------------------------------------


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, cut, removed, doubled, or overwritten by extreme ones."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(found) or 1)
        size = rng.choice((1, 1, 2, 4, 8, 64))
        kind = rng.randrange(6)
        if kind == 0 and found:
            found[at % len(found)] ^= 1 << rng.randrange(8)
        elif kind == 1 and found:
            found[at % len(found)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            del found[at:]
        elif kind == 3:
            del found[at : at + size]
        elif kind == 4:
            found[at:at] = found[at : at + size]
        else:
            found[at : at + size] = rng.choice((b"\0", b"\xff", b"\x80")) * size
    return bytes(found)


def damaged_model(model: ModelProto, rng: random.Random) -> ModelProto:
    """One to three things of the graph replaced."""
    found = ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    for _ in range(rng.choice((1, 1, 2, 3))):
        node = rng.choice(graph.node) if graph.node else None
        tensors = [*graph.initializer, *(attribute.t for node in graph.node for attribute in node.attribute if attribute.HasField("t"))]
        kind = rng.randrange(14)
        if kind < 4 and node is not None and node.attribute:
            _damage_attribute(rng.choice(node.attribute), rng)
        elif kind == 4 and node is not None and node.attribute:
            del node.attribute[rng.randrange(len(node.attribute))]
        elif kind == 5 and node is not None and node.input:
            others = [name for other in graph.node for name in (*other.input, *other.output)]
            node.input[rng.randrange(len(node.input))] = rng.choice([*others, "", "nowhere"])
        elif kind == 6 and node is not None and node.output:
            node.output[rng.randrange(len(node.output))] = rng.choice(
                ["", "x", "w", *(name for other in graph.node for name in other.input)]
            )
        elif kind == 7 and node is not None:
            node.op_type = rng.choice(
                [
                    "Conv",
                    "ConvTranspose",
                    "Gemm",
                    "MatMul",
                    "MatMulInteger",
                    "LSTM",
                    "GRU",
                    "Loop",
                    "Reshape",
                    "Shape",
                    "QLinearConv",
                    "QLinearMatMul",
                    "ConvInteger",
                    "DequantizeLinear",
                    "Quant",
                    "Nothing",
                    "",
                ]
            )
        elif kind == 8 and node is not None:
            node.domain = rng.choice(["", "ai.onnx", "com.microsoft", "onnx.brevitas", "somebody.else"])
        elif kind == 9 and tensors:
            _damage_tensor(rng.choice(tensors), rng)
        elif kind == 10 and graph.input:
            shape = rng.choice(graph.input).type.tensor_type.shape
            if shape.dim and rng.randrange(4):
                rng.choice(shape.dim).dim_value = rng.choice(EDGES)
            else:
                shape.dim.add().dim_value = rng.choice(EDGES)
        elif kind == 11:
            entry = rng.choice(found.opset_import)
            entry.version = rng.choice((0, 1, 6, 7, 9, 11, 13, 21, 99, -5))
        elif kind == 12 and node is not None:
            del node.input[rng.randrange(len(node.input) + 1) :]
        elif graph.initializer:
            del graph.initializer[rng.randrange(len(graph.initializer))]
    return found


def _damage_attribute(attribute, rng: random.Random) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        attribute.name = rng.choice(("pads", "strides", "dilations", "group", "kernel_shape", "auto_pad", "axis", "perm", "direction"))
    elif kind == 1 and attribute.ints:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(EDGES)
    elif kind == 2 and attribute.ints:
        del attribute.ints[rng.randrange(len(attribute.ints)) :]
    elif kind == 3:
        attribute.ints.append(rng.choice(EDGES))
    elif kind == 4:
        attribute.i = rng.choice(EDGES)
    else:
        attribute.type = rng.choice(list(attribute.AttributeType.values()))


def _damage_tensor(tensor: TensorProto, rng: random.Random) -> None:
    kind = rng.randrange(6)
    if kind == 0 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(EDGES)
    elif kind == 1:
        tensor.dims.append(rng.choice(EDGES))
    elif kind == 2:
        tensor.data_type = rng.randrange(30)
    elif kind == 3:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
    elif kind == 4:
        tensor.raw_data = bytes(rng.choice((0, 255, rng.randrange(256))) for _ in tensor.raw_data)
    else:
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (
            ("location", rng.choice(("weights", "../../etc/passwd", "/etc/passwd", "", "a\0b", "model.onnx"))),
            ("offset", rng.choice(("0", "-1", "99999999999999999999", "x"))),
        ):
            if rng.randrange(4):
                entry = tensor.external_data.add()
                entry.key, entry.value = key, text


def damaged(seed: int, originals: list[ModelProto]) -> bytes:
    """Input number ``seed``."""
    rng = random.Random(seed)
    model = rng.choice(originals)
    if seed % 2:
        model = damaged_model(model, rng)
        if rng.randrange(10):
            return bytes(model.SerializeToString())
    return damaged_bytes(model.SerializeToString(), rng)


# -- trying -----------------------------------------------------------------------------------------------------------


def attempt(data: bytes, path: Path) -> str:
    """``read``, or ``refused`` with one message. Anything else is raised."""
    from boards.errors import InputError
    from dse.workload.onnx_import.importer import import_onnx

    path.write_bytes(data)
    try:
        import_onnx(str(path)).network.totals()
    except InputError as error:
        text = str(error)
        assert text and "\n" not in text and len(text) < 4000, text
        assert "bad_alloc" not in text, text
        return "refused"
    return "read"


def run_chunk(seeds: range, queue, memory_bytes: int | None = None) -> None:
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    originals = models()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        for seed in seeds:
            queue.put(("begin", seed))
            begun = time.monotonic()
            try:
                outcome = attempt(damaged(seed, originals), path)
            except Exception as error:  # what the run is for
                outcome = f"failed: {type(error).__name__}: {str(error)[:100]}"
            if time.monotonic() - begun > SLOW_S:
                outcome = f"slow: {outcome}"
            queue.put((outcome, seed))
    queue.put(("end", 0))


def campaign(first: int, count: int, report: Callable[[str], None] = print) -> Counter[str]:
    """Outcomes of ``count`` inputs."""
    outcomes: Counter[str] = Counter()
    at, last = first, first + count
    context = multiprocessing.get_context("spawn")
    while at < last:
        queue = context.SimpleQueue()
        process = context.Process(target=run_chunk, args=(range(at, min(at + CHUNK, last)), queue, MEMORY_BYTES))
        process.start()
        begun = at
        while process.is_alive() or not queue.empty():
            if queue.empty():
                time.sleep(0.01)
                continue
            what, seed = queue.get()
            if what == "end":
                break
            if what == "begin":
                begun = seed
                continue
            outcomes[what.partition(":")[0]] += 1
            at = seed + 1
            if what not in ("read", "refused"):
                report(f"{seed}: {what}")
        process.join()
        if process.exitcode:
            report(f"{begun}: crashed with status {process.exitcode}")
            outcomes["crashed"] += 1
            at = begun + 1
    return outcomes


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    start = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found = campaign(start, number)
    print(f"{number:,} damaged models: " + ", ".join(f"{count:,} {what}" for what, count in sorted(found.items())))
    sys.exit(0 if set(found) <= {"read", "refused"} else 1)
