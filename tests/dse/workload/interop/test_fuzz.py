"""Broken files of every format end in one message that names the file, or are a network like any other.

A few examples here; `NEARMAC_FUZZ_EXAMPLES=20000` runs as many of each.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boards.errors import InputError
from dse.workload.interop.export import FORMATS, export
from dse.workload.interop.scalesim_config import load_config
from dse.workload.load import load_file
from dse.workload.network import Network
from dse.workload.network_file import dump_network, load_network_file
from tests.dse.workload.interop.test_scalesim_config import TEXT as CONFIG
from tests.dse.workload.interop.test_timeloop import INSTANCE, SHAPE
from tests.dse.workload.interop.test_zigzag import RESNET

EXAMPLES = int(os.environ.get("NEARMAC_FUZZ_EXAMPLES", "20"))
several = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
TOPOLOGY = ("Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n"
            "a, 17, 35, 1, 7, 3, 8, 2,\nb DP, 9, 15, 3, 2, 8, 1, 1,\nc, 7, 14, 3, 3, 8, 4, 1, 2:4,\nfc, 1, 1, 1, 1, 9, 4, 1,\n")
PRODUCTS = "Layer, M, N, K,\na, 12, 5, 7,\nb, 12, 4, 5,\n"
PROBLEM = {"problem": {"version": 0.4, "shape": SHAPE, "instance": INSTANCE}}

values = st.one_of(
    st.sampled_from((0, -1, 1, 2, 65, 4096, 1 << 16, 1 << 48, 1 << 70, True, None, "", "x", "nan", "1", float("nan"), float("inf"),
                     0.5, [], {}, [[]], [{}], {"a": 1}, "O[b]+=W[b]*I[b]", "ix=1*ix+1*ix", "ix=9*ox+9*fx", "W", "é", "a b", "\x07", [1, 2],
                     [["C"]])),
    st.integers(-5, 100), st.text(max_size=8))
cells = st.sampled_from(("0", "-1", "1", "3", "8", "64", "65", "9999999999", "1" * 30, "nan", "1e3", "1.5", "", " ", "x", "2:4", "4:2", ":",
                         "#", "DP", "0x10", "\x00", "\u0663", "'", '"', "a,b", "\n", "\r", "\t"))


@st.composite
def documents(draw: st.DrawFn, document: Any) -> Any:
    """``document`` with one to three values or keys replaced, removed or repeated."""
    box = [copy.deepcopy(document)]
    for _ in range(draw(st.integers(1, 3))):
        holder: Any = box
        key: Any = 0
        while isinstance(holder[key], list | dict) and holder[key] and draw(st.integers(0, 5)):
            holder = holder[key]
            key = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        action = draw(st.sampled_from(("replace", "replace", "remove", "repeat", "rename")))
        if action == "replace" or holder is box:
            holder[key] = copy.deepcopy(draw(values))  # lists are changed later
        elif action == "remove":
            del holder[key]
        elif isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        else:
            holder[draw(st.sampled_from((key.upper(), key + "s", "x", "name", "shape", key.replace("_", "-"))))] = holder.pop(key)
    return box[0]


@st.composite
def texts(draw: st.DrawFn, text: str) -> str:
    """``text`` with pieces replaced."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 6))
        text = text[:at] + draw(st.one_of(cells, st.text(max_size=3))) + text[at + length:]
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def check(path: Path, content: str, load: Callable[[str], Any] = load_file) -> Any:
    """What ``load`` makes of the file; ``None`` after one message of one line about it."""
    path.write_text(content, encoding="utf-8", errors="surrogatepass", newline="")
    try:
        return load(str(path))
    except InputError as error:
        assert (error.where or "").startswith(str(path)), error
        assert "\n" not in str(error) and len(str(error)) < 1500
    return None


def check_network(path: Path, content: str) -> None:
    """A file that is accepted makes a network that can be written, read, and exported or refused."""
    network = check(path, content)
    if isinstance(network, Network):
        assert network.macs > 0 and network.graph.number_of_nodes() == len(network.nodes)
        again = path.with_name("again.yaml")
        again.write_text(dump_network(network))
        assert load_network_file(again) == network
        for format in FORMATS:
            try:
                assert export(network, format).files
            except InputError as error:
                assert error.where


@pytest.mark.parametrize("text", [TOPOLOGY, PRODUCTS], ids=["convolutions", "products"])
def test_topologies(text, folder):
    @several
    @given(texts(text))
    def run(content: str) -> None:
        check_network(folder / "net.csv", content)

    run()


@pytest.mark.parametrize("document", [list(RESNET), PROBLEM], ids=["zigzag", "timeloop"])
def test_documents(document, folder):
    @several
    @given(documents(document))
    def run(changed: Any) -> None:
        check_network(folder / "net.yaml", yaml.safe_dump(changed, allow_unicode=True))

    run()


@pytest.mark.parametrize("document", [list(RESNET)[:2], PROBLEM], ids=["zigzag", "timeloop"])
def test_yaml_as_text(document, folder):
    text = yaml.safe_dump(document)

    @several
    @given(texts(text))
    def run(content: str) -> None:
        check_network(folder / "text.yaml", content)

    run()


def test_configurations(folder):
    @several
    @given(texts(CONFIG))
    def run(content: str) -> None:
        config = check(folder / "s.cfg", content, load_config)
        if config is not None:
            try:
                assert config.design_options()["rows"] >= 1
            except InputError as error:
                assert (error.where or "").startswith(str(folder))

    run()


@pytest.mark.parametrize("text", [
    "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "[" * 10_000, "- " * 10_000, "- {a: " * 1000, "? " * 5000, "problem: " + "{x: " * 17,
    "&a [*a]", "- !!python/object:os.system x", "%YAML 9.9\n---\n- 1", "\ufeff- id: 0", "- id: 0\n---\n- id: 1", "problem:\n\tx: 1",
    "x" * 2_000_000])
def test_bombs(text, folder):
    assert check(folder / "bomb.yaml", text) is None
