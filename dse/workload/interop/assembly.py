"""Layers of another tool's file, put together as a network: names that ours may have, inputs, remarks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network
from dse.workload.operators import MAX_NAME

SHOWN = 4
"""Layers that a remark names."""


class Assembly:
    """A :class:`NetworkBuilder` for the layers of the file ``path``, which gives its name to the network."""

    def __init__(self, path: str, *, weight_bits: int, activation_bits: int) -> None:
        self.builder = NetworkBuilder(clean_name(PurePath(path).stem) or "network", where=path, weight_bits=weight_bits,
                                      activation_bits=activation_bits)
        self._taken: set[str] = set()
        self._remarks: dict[str, list[str]] = {}

    def name(self, text: str, *, otherwise: str) -> str:
        """``text`` as the name of an operator, unlike all before; ``otherwise`` where nothing is left of it."""
        wanted = clean_name(text) or otherwise
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name

    def layer(self, name: str, shape: Sequence[int], dimensions: Mapping[str, Any], *, source: str | None = None, **bits: Any) -> str:
        """A convolution with these keys of a layer, or without FY a linear layer, that reads ``source`` or else an input of its own.

        ``shape``: (B, C, IY, IX) of that input. ``bits``: options of :meth:`NetworkBuilder.conv`. The formats have no biases.
        """
        if source is None:
            source = self.builder.input(tuple(shape), self.name(f"{name}_input", otherwise="input"), bits=bits.get("activation_bits"))
        add = self.builder.conv if "FY" in dimensions else self.builder.linear
        return add(source, name, bias=False, **bits, **dimensions)

    def reads(self, source: str, shape: Sequence[int], *, is_linear: bool) -> str | None:
        """``source`` where its output has ``shape``; for a linear layer, as one vector, too. ``None`` where it has another size."""
        output = self.builder.tensor(source)
        if output.shape == tuple(shape):
            return source
        if is_linear and shape[0] == output.shape[0] and output.elements == shape[0] * shape[1]:
            return self.builder.flatten(source, self.name(f"{source}_flat", otherwise="flat"))
        return None

    def remark(self, what: str, name: str | None = None) -> None:
        """Tell the user ``what``, of the layer ``name``; the same of several layers becomes one remark."""
        names = self._remarks.setdefault(what, [])
        if name is not None and name not in names[-1:]:
            names.append(name)

    def build(self) -> Network:
        """The network with its remarks. Raises InputError."""
        for what, names in self._remarks.items():
            self.builder.remarks.append(": ".join((self.builder.where, *([listed(names)] if names else []), what)))
        return self.builder.build()


def clean_name(text: str) -> str:
    """``text`` without what names may not have: spaces and control characters become ``_``."""
    return re.sub(r"\s+", "_", "".join(c if c.isprintable() else " " for c in text).strip())[:MAX_NAME - 20]


def listed(names: Sequence[str]) -> str:
    """``"conv1, conv2 and 3 more"``."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
