"""Whether nodes have the inputs, outputs and attributes that ONNX defines for their operators.

ONNX's shape inference is C++ that trusts in them: a Gemm without inputs makes it allocate until nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from boards.errors import InputError
from dse.workload.onnx_import.graph import STANDARD_DOMAINS

if TYPE_CHECKING:
    from onnx import NodeProto


def check_nodes(nodes: Iterable[NodeProto], opsets: dict[str, int], where: str) -> None:
    """Raise InputError for the first node, in the graphs of control flow too, that is not as its operator is defined.

    ``opsets``: version by domain. Operators that ONNX does not define are not looked at.
    """
    schemas: dict[tuple[str, str], Any] = {}
    stack = list(nodes)
    while stack:
        node = stack.pop()
        key = ("" if node.domain in STANDARD_DOMAINS else node.domain, node.op_type)
        if key not in schemas:
            schemas[key] = _schema(*key, opsets.get(key[0], opsets.get("ai.onnx", 1)))
        if schemas[key] is not None:
            _check(node, schemas[key], f"{where}: {node.name or (node.output[0] if node.output else node.op_type)}")
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                stack += graph.node


def _schema(domain: str, op: str, version: int) -> Any:
    from onnx import defs

    try:
        return defs.get_schema(op, version, domain)
    except Exception:  # not of ONNX, or not in this version
        return None


def _check(node: NodeProto, schema: Any, where: str) -> None:
    for what, names, least, most in (("inputs", node.input, schema.min_input, schema.max_input),
                                     ("outputs", node.output, schema.min_output, schema.max_output)):
        if not least <= len(names) <= most:
            allowed = f"{least}" if least == most else f"{least} to {most}" if most < 1 << 16 else f"at least {least}"
            raise InputError(f"{node.op_type} with another number of {what}", where=where, value=len(names), allowed=allowed)
    given = {attribute.name for attribute in node.attribute}
    missing = sorted(name for name, attribute in schema.attributes.items() if attribute.required and name not in given)
    if missing:
        raise InputError(f"{node.op_type} needs it", where=f"{where}.{missing[0]}")
