"""Shapes and element types of every tensor, by ONNX's shape inference for fixed input sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.workload.onnx_import.graph import Graph
from dse.workload.onnx_import.reading import tensor_array
from dse.workload.onnx_import.schema import check_nodes
from dse.workload.onnx_import.surrogates import surrogate
from dse.workload.operators import MAX_RANK, unknown

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TypeProto

Shape = tuple[int, ...]
MAX_SIZE = 1 << 32
MAX_FOLDED = 4096  # elements of a constant that shapes are computed from
MAX_ROUNDS = 20
OPTION = "--input-shape"
SHAPE_ARITHMETIC = frozenset((
    "Add", "Cast", "Ceil", "Concat", "Div", "Equal", "Floor", "Gather", "Identity", "Max", "Min", "Mod", "Mul", "Neg", "ReduceMax",
    "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Transpose", "Unsqueeze", "Where"))
"""Operators evaluated here when shapes depend on them: none makes much out of little."""


@dataclass(frozen=True)
class Shapes:
    """``sizes``: tensors whose every size is known; ``types``: ONNX element types."""

    sizes: dict[str, Shape]
    types: dict[str, int]


def infer_shapes(graph: Graph, input_shapes: Mapping[str, Sequence[int]] | None = None) -> Shapes:
    """Shapes with ``input_shapes`` (by name of the model's input) instead of the model's own.

    Raises InputError: an input without a fixed size, an unknown name, sizes that do not agree.
    """
    model = _prepared(graph, input_shapes or {})
    declared = [] if input_shapes else list(graph.file.proto.graph.value_info)
    shapes = _read(graph, _inferred(model, graph.path))
    for _ in range(MAX_ROUNDS):
        if all(name in shapes.sizes for node in model.graph.node for name in node.output if name):
            break
        if not _fold(model, graph, shapes) and not _declare(model, declared, shapes):
            break
        shapes = _read(graph, _inferred(model, graph.path), shapes)
    return shapes


def _prepared(graph: Graph, given: Mapping[str, Sequence[int]]) -> ModelProto:
    """A copy for inference: input sizes fixed, nothing claimed about what follows, other domains' operators replaced."""
    from onnx import ModelProto

    for name in given:
        if name not in graph.inputs:
            raise unknown("the model has no such input", name, list(graph.inputs), where=OPTION)
    model = ModelProto()
    model.CopyFrom(graph.file.proto)
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    for value in model.graph.input:
        if value.name in graph.inputs and value.type.WhichOneof("value") in ("tensor_type", None):
            _fix(value.type, value.name, given.get(value.name), graph)
    imported = {entry.domain for entry in model.opset_import}
    for domain in sorted({node.domain for node in model.graph.node} - imported):
        if domain != "ai.onnx" or "" not in imported:
            model.opset_import.add(domain=domain, version=1)
    nodes = [surrogate(node.proto) or node.proto for node in graph.nodes]
    check_nodes(nodes, {entry.domain: entry.version for entry in model.opset_import}, graph.path)
    constants = [(node, attribute.t) for node in nodes if node.op_type == "Constant" and len(node.output) == 1
                 for attribute in node.attribute if attribute.name == "value" and attribute.HasField("t")]
    lifted = {id(node) for node, _ in constants}
    del model.graph.node[:]
    model.graph.node.extend(node for node in nodes if id(node) not in lifted)
    for node, tensor in constants:
        model.graph.initializer.add().CopyFrom(tensor)
        model.graph.initializer[-1].name = node.output[0]
    return model


def _fix(kind: TypeProto, name: str, given: Sequence[int] | None, graph: Graph) -> None:
    """Fix the sizes of an input, or ask for them."""
    shape = kind.tensor_type.shape
    names = [dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?") for dim in shape.dim]
    fixed = [dim.dim_value for dim in shape.dim if dim.HasField("dim_value") and 0 < dim.dim_value <= MAX_SIZE]
    has_shape = kind.tensor_type.HasField("shape")
    if given is None:
        if has_shape and len(fixed) == len(shape.dim):
            return
        if name not in graph.readers:  # nobody would notice
            return
        example = "x".join(str(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value > 0 else "1" if at == 0 else "N"
                           for at, dim in enumerate(shape.dim)) or "N"
        raise InputError("an input without a fixed size", where=graph.at(name), value=names if has_shape else "no shape",
                         suggestion=f"give it: {OPTION} {name}={example}{', with a number for each N' if 'N' in example else ''}")
    if has_shape and len(given) != len(shape.dim):
        raise InputError(f"the model's input {name} has {len(shape.dim)} sizes", where=OPTION, value="x".join(map(str, given)),
                         allowed=f"sizes for {names}")
    if not 1 <= len(given) <= MAX_RANK or not all(isinstance(size, int) and 1 <= size <= MAX_SIZE for size in given):
        raise InputError("not a shape", where=OPTION, value="x".join(map(str, given)), allowed=f"1 to {MAX_RANK} sizes from 1 on")
    shape.ClearField("dim")
    kind.tensor_type.shape.SetInParent()
    for size in given:
        shape.dim.add().dim_value = size


def _inferred(model: ModelProto, path: str) -> ModelProto:
    from onnx import shape_inference

    try:
        return shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:  # InferenceError, or what else the C++ code throws
        text = " ".join(str(error).split())
        raise InputError(f"shapes cannot be inferred: {text[:200]}", where=path) from None


def _read(graph: Graph, model: ModelProto, before: Shapes | None = None) -> Shapes:
    """Sizes and types that inference found."""
    sizes: dict[str, Shape] = dict(before.sizes) if before else {}
    types: dict[str, int] = dict(before.types) if before else {}
    for tensor in model.graph.initializer:
        sizes[tensor.name], types[tensor.name] = tuple(tensor.dims), tensor.data_type
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        tensor_type = value.type.tensor_type
        if tensor_type.elem_type:
            types.setdefault(value.name, tensor_type.elem_type)
        if value.type.WhichOneof("value") == "tensor_type" and tensor_type.HasField("shape"):
            dims = tensor_type.shape.dim
            if all(dim.HasField("dim_value") and 0 <= dim.dim_value <= MAX_SIZE for dim in dims):
                sizes.setdefault(value.name, tuple(dim.dim_value for dim in dims))
    return Shapes(sizes, types)


def _declare(model: ModelProto, declared: list[Any], shapes: Shapes) -> bool:
    """Tell inference what the file says of tensors that it cannot infer itself; whether there was anything."""
    missing = {name for node in model.graph.node for name in node.output if name} - set(shapes.sizes)
    useful = [value for value in declared if value.name in missing and value.type.tensor_type.HasField("shape")
              and all(dim.HasField("dim_value") and dim.dim_value > 0 for dim in value.type.tensor_type.shape.dim)]
    model.graph.value_info.extend(useful)
    declared.clear()
    return bool(useful)


def _fold(model: ModelProto, graph: Graph, shapes: Shapes) -> bool:
    """Replace arithmetic on known shapes by its results; whether there was any."""
    known: dict[str, NDArray[Any]] = {}
    for tensor in model.graph.initializer:
        if prod(tensor.dims) <= MAX_FOLDED and tensor.data_location != tensor.EXTERNAL and tensor.data_type != tensor.STRING:
            known[tensor.name] = tensor_array(tensor, graph.path, graph.at(tensor.name))
    nodes = list(model.graph.node)
    kept: list[NodeProto] = []
    results: dict[str, NDArray[Any]] = {}
    for node in nodes:
        values = _evaluate(node, known, shapes, model)
        if values is None:
            kept.append(node)
            continue
        known |= values
        results |= values
    if results:
        from onnx import numpy_helper

        copies = [type(node).FromString(node.SerializeToString()) for node in kept]
        del model.graph.node[:]
        model.graph.node.extend(copies)
        model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in results.items())
    return bool(results)


def _evaluate(node: NodeProto, known: Mapping[str, NDArray[Any]], shapes: Shapes, model: ModelProto) -> dict[str, NDArray[Any]] | None:
    """What ``node`` produces, if that follows from shapes and small constants alone."""
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type == "Size" and node.input and node.input[0] in shapes.sizes:
        return {node.output[0]: np.array(prod(shapes.sizes[node.input[0]]), np.int64)}
    if node.op_type == "Shape" and node.input and node.input[0] in shapes.sizes:
        size = shapes.sizes[node.input[0]]
        ends = {attribute.name: attribute.i for attribute in node.attribute}
        return {node.output[0]: np.array(size[ends.get("start", 0):ends.get("end", len(size))], np.int64)}
    if node.op_type == "ConstantOfShape" and node.input and node.input[0] in known:
        if prod(int(size) for size in known[node.input[0]].ravel()) > MAX_FOLDED:
            return None
    elif node.op_type not in SHAPE_ARITHMETIC or not node.input or not all(name in known for name in node.input if name):
        return None
    return reference(node, {name: known[name] for name in node.input if name}, model)


def reference(node: NodeProto, inputs: Mapping[str, NDArray[Any]], model: ModelProto,
              most: int = MAX_FOLDED) -> dict[str, NDArray[Any]] | None:
    """``node`` on ``inputs`` by ONNX's reference implementation; ``None`` where that cannot, or makes more than ``most`` elements."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in inputs.items()]
    outputs = [helper.make_value_info(name, helper.make_tensor_type_proto(0, None)) for name in node.output if name]
    single = helper.make_model(helper.make_graph([node], "one", values, outputs), opset_imports=model.opset_import)
    try:
        found = ReferenceEvaluator(single).run(None, dict(inputs))
    except Exception:  # a damaged node; inference has more to say about it
        return None
    arrays = [np.asarray(array) for array in found]
    if any(array.size > most or array.dtype.kind not in "iufb" for array in arrays):
        return None
    return {name: array for name, array in zip((name for name in node.output if name), arrays, strict=True)}
