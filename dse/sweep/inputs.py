"""What a sweep is made from, as plain values: a directory of results goes on only from the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FORMAT = 2
"""Of the files of a sweep; counts up when their meaning changes."""
SHOWN = 3
PACKAGES = ("boards", "hdl", "sim", "dse")


@cache
def versions() -> dict[str, str]:
    """Everything whose change could change a byte of the results: this package and its source, and what computes and writes."""
    try:
        ours = version("nearmac")
    except PackageNotFoundError:
        ours = "(source)"
    return {"nearmac": ours, "source": _source_digest(), "numpy": version("numpy"), "pyarrow": version("pyarrow")}


def _source_digest() -> str:
    """Of every module and data file of ours, by name and content: the version alone does not see an edit."""
    root = Path(__file__).parent.parent.parent
    total = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if "cli" not in path.relative_to(root).parts:  # the command's face changes no result
                data = path.read_bytes()
                total.update(f"{path.relative_to(root).as_posix()} {len(data)}\n".encode() + data)
    return total.hexdigest()[:16]


def digest(inputs: Mapping[str, Any]) -> str:
    """A key that differs when the inputs do."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, allow_nan=False).encode()).hexdigest()


def describe_differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """``"space.rows was [1, 2], is [1, 2, 4]; and 2 more"``; ``None`` when they are the same. Plain values, compared as JSON has them."""
    found = list(_differences("", json.loads(json.dumps(was)), json.loads(json.dumps(now))))
    if not found:
        return None
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "; ".join([f"{key} was {_short(old)}, is {_short(new)}" for key, old, new in found[:SHOWN]] + more)


_NOTHING = object()


def _differences(key: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(was, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*was, *now]):
            yield from _differences(f"{key}.{name}" if key else name, was.get(name, _NOTHING), now.get(name, _NOTHING))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now) and any(isinstance(e, dict) for e in was):
        for at, (old, new) in enumerate(zip(was, now, strict=True)):
            yield from _differences(f"{key}[{at}]", old, new)
    elif was != now:
        yield key, was, now


def _short(value: Any, limit: int = 60) -> str:
    if value is _NOTHING:
        return "not there"
    if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        return f"{len(value)} entries"
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
