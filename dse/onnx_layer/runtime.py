"""Values of any tensor of a model, by ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.onnx_layer.lowering import lowered, unsigned_weights
from dse.workload.onnx_import.importer import Imported
from dse.workload.onnx_import.quantisation import is_quant
from dse.workload.onnx_import.reading import EXTRA, element_type
from dse.workload.operators import unknown

OPTION = "--input"
Arrays = Mapping[str, NDArray[Any]]


def runtime_version() -> str:
    """Of ONNX Runtime. Raises InputError where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        raise InputError("needs the package onnxruntime, which is not installed", where=OPTION, suggestion=EXTRA) from None
    return str(onnxruntime.__version__)


class Runtime:
    """Runs a model as far as is needed on ``samples``: for each, the values of the model's inputs (or of any of its tensors) by name."""

    def __init__(self, imported: Imported, samples: list[Arrays]) -> None:
        self.imported, self.samples = imported, samples
        self._found: list[dict[str, NDArray[Any]]] = [dict(sample) for sample in samples]

    def value(self, name: str) -> NDArray[Any]:
        """A tensor for the first sample; constants are read, not run. Raises InputError."""
        if name in self.imported.building.constants:
            return self.imported.building.constants.value(name)
        self.fetch([name])
        return self._found[0][name]

    def every(self, name: str) -> list[NDArray[Any]]:
        """A tensor for each sample."""
        if name in self.imported.building.constants:
            return [self.value(name)]
        self.fetch([name], every=True)
        return [found[name] for found in self._found]

    def fetch(self, names: Iterable[str], *, every: bool = False) -> None:
        """Compute what is not a constant and not there yet, in one run, for the first sample or for ``every`` one.

        Raises InputError: no ONNX Runtime, an input without a value, an operator that cannot be run.
        """
        count = len(self.samples) if every else 1
        constants = self.imported.building.constants
        wanted = [name for name in dict.fromkeys(names) if name not in constants
                  and any(name not in found for found in self._found[:count])]
        if not wanted:
            return
        session = self._session(wanted, set(self.samples[0]))
        read = {value.name for value in session.get_inputs()}
        for sample, found in zip(self.samples[:count], self._found, strict=False):
            try:
                results = session.run(wanted, {name: sample[name] for name in read})
            except Exception as error:  # ONNX Runtime has many, without a common class
                raise _cannot_run(self.imported.graph.path, error) from None
            found.update(zip(wanted, results, strict=True))

    def _session(self, wanted: list[str], fed: set[str]) -> Any:
        """ONNX Runtime with the part of the model from ``fed`` to ``wanted``, as it is: nothing optimised, nothing fused."""
        runtime_version()
        import onnxruntime

        model = self._part(wanted, fed)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        folder = os.path.realpath(os.path.dirname(self.imported.graph.path) or ".")
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        try:
            return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise _cannot_run(self.imported.graph.path, error) from None

    def _part(self, wanted: list[str], fed: set[str]) -> Any:
        from onnx import ModelProto, helper

        graph, building = self.imported.graph, self.imported.building
        needed: set[str] = set()
        stack = list(wanted)
        while stack:
            name = stack.pop()
            if name in needed or not name:
                continue
            needed.add(name)
            if name in graph.producers and name not in fed:
                stack += graph.producers[name].inputs
                stack += graph.captured.get(graph.producers[name], ())
        missing = sorted(name for name in needed if name in graph.inputs and name not in fed)
        if missing:
            raise InputError(f"the model's input {missing[0]} is missing", where=OPTION, allowed=", ".join(graph.inputs))
        source = graph.file.proto
        model = ModelProto(ir_version=source.ir_version, opset_import=[entry for entry in source.opset_import])
        model.graph.name = "part"
        for node in graph.nodes:
            if not needed.intersection(node.outputs) or fed.intersection(node.outputs):
                continue
            value = node.tensor("value")
            replaced = lowered(node, building.quantisation) if is_quant(node) else unsigned_weights(node, building)
            if replaced is not None:
                model.graph.node.extend(replaced[0])
                model.graph.initializer.extend(replaced[1])
            elif node.op == "Constant" and value is not None:  # its data may be outside, which only initialisers can be
                model.graph.initializer.add().CopyFrom(value)
                model.graph.initializer[-1].name = node.outputs[0]
            else:
                model.graph.node.append(node.proto)
                del model.graph.node[-1].attribute[:]
                model.graph.node[-1].attribute.extend(attribute for attribute in node.proto.attribute
                                                      if attribute.name not in ("weight_size", "act_size", "output_size"))
        model.graph.initializer.extend(tensor for name, tensor in graph.initializers.items() if name in needed)
        for name in sorted(fed & needed):
            model.graph.input.append(graph.inputs[name] if name in graph.inputs else helper.make_tensor_value_info(
                name, self.imported.shapes.types.get(name, 1), None))
        model.graph.output.extend(helper.make_value_info(name, helper.make_tensor_type_proto(
            self.imported.shapes.types.get(name, 1), None)) for name in wanted)
        return model


def _cannot_run(path: str, error: Exception) -> InputError:
    return InputError(f"ONNX Runtime cannot run it: {' '.join(str(error).split())[:300]}", where=path)


def split_samples(imported: Imported, arrays: Arrays, where: str) -> list[Arrays]:
    """``arrays`` by name, cut into samples: each as large as the model's input; several lie behind one another along the first axis.

    Raises InputError: an unknown name, another type or shape, different numbers of samples.
    """
    graph, sizes = imported.graph, imported.shapes.sizes
    known = [*graph.inputs, *graph.producers]
    counts: dict[str, int] = {}
    converted: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        at = f"{where}: {name}"
        if name not in graph.inputs and name not in graph.producers:
            raise unknown("neither an input of the model nor another tensor of it", name, known, where=where)
        shape = sizes.get(name)
        if shape is None:
            raise InputError("a tensor of unknown shape cannot be given", where=at)
        kind, _ = element_type(imported.shapes.types.get(name, 1), at)
        if array.dtype != kind and not (array.dtype.kind == kind.kind == "f" or array.dtype.kind in "iu" and kind.kind == "f"):
            raise InputError("another type of elements", where=at, value=array.dtype.name, allowed=kind.name)
        first = shape[0] if shape else 1
        if array.ndim != len(shape) or array.shape[1:] != shape[1:] or shape and (not array.shape[0] or array.shape[0] % first):
            raise InputError("wrong shape", where=at, value=array.shape, allowed=f"{shape}, or several along the first axis")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError("holds values that are not finite", where=at)
        counts[name] = array.shape[0] // first if shape else 1
        converted[name] = array.astype(kind, copy=False)
    if len(set(counts.values())) > 1:
        raise InputError("different numbers of samples", where=where, value=counts)
    count = next(iter(counts.values()), 0)
    if not count:
        raise InputError("no arrays", where=where, allowed=", ".join(graph.inputs))
    return [{name: array[at * len(array) // count:(at + 1) * len(array) // count] if array.ndim else array
             for name, array in converted.items()} for at in range(count)]
