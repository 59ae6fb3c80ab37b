"""Layers and designs as YAML files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from boards.strict_yaml import read_mapping
from hdl.design import Design
from hdl.layer import Layer


def load_layer(path: str | Path) -> Layer:
    """The layer of a YAML file: a mapping with the keys of :meth:`Layer.from_dict`."""
    return Layer.from_dict(read_mapping(path), where=f"{path}: layer")


def dump_layer(layer: Layer) -> str:
    """YAML text that :func:`load_layer` reads back to an equal layer."""
    return dump_mapping(layer.to_dict())


def load_design(path: str | Path) -> Design:
    """The design of a YAML file: a mapping with the fields of :class:`Design`."""
    return Design.from_dict(read_mapping(path), where=f"{path}: design")


def dump_design(design: Design) -> str:
    """YAML text that :func:`load_design` reads back to an equal design."""
    return dump_mapping(design.to_dict())


class _Dumper(yaml.SafeDumper):
    """Quotes every string that is not a plain word: YAML 1.1 and 1.2 differ in which words are numbers (``1e3``)."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text)
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(str, _Dumper.represent_text)


def dump_mapping(data: dict[str, Any]) -> str:
    """Plain values as YAML text that ``boards.strict_yaml`` reads back equal; keys keep their order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)
