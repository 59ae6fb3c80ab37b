"""Folds what the output stage can compute into the layer before it.

The output stage multiplies, adds and clamps each result (``hdl/requantize.py``), so a batch normalisation and a clamp-like activation
that directly follow a layer cost nothing there. They are listed as ``folded`` of the layer and counted nowhere else. An activation
that follows an addition on the host is done in the same pass: its ops count, its bytes do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace

from dse.workload.operators import CLAMPS, ArrayOperator, HostOperator, Operator, can_fold
from hdl.layer import Layer

WITH_ADDITION = ("add", "multiply")


def fold(nodes: tuple[Operator, ...], foldable: Set[str], kept: Set[str] = frozenset()) -> tuple[Operator, ...]:
    """``nodes`` without those that were folded; readers of a folded one read the layer.

    ``foldable``: names of the operators that may be folded. A tensor that more than one operator reads, or that is ``kept``, stays.
    """
    readers = Counter(name for node in nodes for name in node.inputs)
    done: dict[str, Operator] = {}
    renamed: dict[str, str] = {}
    joined: dict[str, list[HostOperator]] = {}
    for node in nodes:
        if isinstance(node, HostOperator) and node.name in foldable:
            source = node.inputs[0]
            before = done[renamed.get(source, source)]
            chain = joined.setdefault(before.name, [])
            if readers[source] == 1 and source not in kept and _can_join(before, chain, node):
                chain.append(node)
                renamed[node.name] = before.name
                continue
        if not set(node.inputs).isdisjoint(renamed):
            node = replace(node, inputs=tuple(renamed.get(name, name) for name in node.inputs))
        done[node.name] = node
    return tuple(_join(node, joined[node.name]) if joined.get(node.name) else node for node in done.values())


def _can_join(before: Operator, chain: Sequence[HostOperator], node: HostOperator) -> bool:
    """Whether ``before``, which does ``chain`` already, can do ``node`` too."""
    if isinstance(before, ArrayOperator):
        return can_fold((*before.folded, *(done.op for done in chain)), node.op)
    return isinstance(before, HostOperator) and before.op in WITH_ADDITION and not before.folded and not chain and node.op in CLAMPS


def _join(before: Operator, chain: Sequence[HostOperator]) -> Operator:
    """``before`` that also computes ``chain``."""
    ops, output = tuple(node.op for node in chain), chain[-1].output
    if isinstance(before, ArrayOperator):
        return replace(before, folded=(*before.folded, *ops), output_bits=output.bits,
                       layer=_clamped(before.layer, ops[-1], output.bits))
    assert isinstance(before, HostOperator)
    return replace(before, folded=ops, ops=before.ops + sum(node.ops for node in chain), output=output)


def _clamped(layer: Layer, op: str, bits: int) -> Layer:
    """ReLU is the clamp's low end at the integer that stands for 0; 1-bit outputs have no clamp, and scales decide the others' ends."""
    if op in ("relu", "relu6") and bits > 1 and layer.lo is None:
        return replace(layer, lo=layer.output_zero_point)
    return layer
