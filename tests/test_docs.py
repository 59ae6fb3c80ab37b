"""README, docs/ and examples/: generated parts are up to date, what they name exists, what they show runs."""

from __future__ import annotations

import importlib.util
import re
import runpy
import shlex
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import pytest
import typer

from boards import load_board
from dse.cli.main import app
from dse.cli.main import run as run_command
from dse.fidelity.check import Point, check_point
from dse.schedule.graph import graph_cycles, tile_graph
from dse.workload.interop.scalesim_config import load_config
from dse.workload.layer_file import load_design, load_layer
from dse.workload.load import load_workload
from hdl import timing
from hdl.design import Design
from hdl.program import Mode, Opcode, Stage, fields

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = ROOT / "examples"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tables, architecture = script("make_tables"), script("make_architecture")


def page_id(path: Path) -> str:
    return path.name


def code_blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """The arguments of every `nearmac ...` line of the pages and of the example files' first lines."""
    lines = [line for path in PAGES for block in code_blocks(path, "sh") for line in block.splitlines()]
    lines += re.findall(r"\.venv/bin/(nearmac [^`\n]+)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    lines += [found for path in EXAMPLES.glob("*.yaml")
              for found in re.findall(r"^# .*?(nearmac .*)$", path.read_text(encoding="utf-8"), re.MULTILINE)]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("nearmac ")]


# -- generated parts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_generated_parts_are_up_to_date(path):
    text = path.read_text(encoding="utf-8")
    assert tables.filled(text) == text, "run `python docs/make_tables.py`"


def test_every_generated_part_is_in_a_page():
    found = [name for path in PAGES for name in re.findall(r"<!-- generated: (.+) -->", path.read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(tables.PARTS)


DESIGNS = [
    tables.EXAMPLE_DESIGN, Design(rows=1, cols=1), Design(rows=4, cols=4, lanes=3, psum_bytes=4096, bus_bits=128, chaining=True),
    Design(rows=2, cols=33, lanes=2, weight_bits=1, activation_bits=1, multiplier="lut", accumulator_bits=16, psum_bytes=4096),
    Design(rows=2, cols=3, weight_bits=4, activation_bits=1, multiplier="lut", accumulator_bits=16),
]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: f"{design.array}-{design.precision}")
def test_every_field_is_in_the_table_under_its_stage(design):
    sections = {name: text for name, text in re.findall(r"\*\*(\w+)\.\*\*(.*?)(?=\*\*|\Z)", tables.field_table(), re.DOTALL)}
    for field in fields(design).values():
        assert f"| `{field.name}` |" in sections[field.stage.name]


def test_the_table_has_no_fields_that_no_design_has():
    known = {name for design in DESIGNS for name in fields(design)}
    assert set(tables.FIELDS) == known


def test_every_opcode_mode_and_stage_is_explained():
    assert set(tables.OPCODES) == set(Opcode) and set(tables.MODES) == set(Mode) and set(tables.STAGES) == set(Stage)


def test_every_timing_constant_is_in_the_table():
    values = {name: value for name, value in vars(timing).items() if name.isupper()}
    assert {name: value for name, (value, _) in tables.constants().items()} == values
    text = (ROOT / "docs" / "timing.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` | {value} |" in text for name, value in values.items())


def test_worked_example_is_what_prediction_graph_and_simulation_say():
    plan, program = tables.example()
    cycles = int(re.search(r"Sum: \*\*(\d+) cycles\*\*", (ROOT / "docs" / "timing.md").read_text(encoding="utf-8"))[1])
    assert tables.example_cycles() == cycles
    assert graph_cycles(tile_graph(plan, program, tables.EXAMPLE_TIMING)) == cycles
    point = Point(plan.design, plan.layer, plan.tiling, tables.EXAMPLE_TIMING, 1)
    outcome = check_point(point, engine="amaranth")
    assert outcome.mismatches == () and outcome.result.cycles == cycles


def test_word_formats_of_the_memory_page():
    """The table of words, slots and entries, against the design."""
    text = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+), (\d+), (\d+) \| (\d+) bits \| (\d+) bits, .* \| (\d+) words? \|$", text, re.MULTILINE)
    assert len(rows) == 4
    for cols, bits, bus, word, slot, words in (map(int, row) for row in rows):
        design = Design(rows=1, cols=cols, weight_bits=8, activation_bits=bits, bus_bits=bus)
        assert (design.word_bits("input"), design.word_slot_bits("input"), design.words_per_entry("input")) == (word, slot, words)


# -- the picture ------------------------------------------------------------------------------------------------------


def test_picture_is_up_to_date():
    assert architecture.svg() == architecture.OUT.read_text(encoding="utf-8"), "run `python docs/make_architecture.py`"


def test_picture_is_accessible_and_complete():
    root = ElementTree.fromstring(architecture.svg())
    tag = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img" and root.find(f"{tag}title").text and root.find(f"{tag}desc").text
    assert root.get("aria-labelledby") == "title desc"
    assert root.findall(f"{tag}rect")[0].get("fill") == architecture.PANEL  # its own ground: readable on any page
    for text in root.findall(f"{tag}text"):
        assert 0 < float(text.get("x")) < architecture.WIDTH and 0 < float(text.get("y")) < architecture.HEIGHT


def test_labels_fit_and_do_not_overlap():
    labels = architecture.draw().labels
    assert all(label.fits for label in labels)
    half = {label: len(label.text) * label.size * architecture.GLYPH_SHARE / 2 for label in labels}
    for at, one in enumerate(labels):
        for other in labels[at + 1:]:
            same_line = abs(one.y - other.y) < min(one.size, other.size)
            assert not (same_line and abs(one.x - other.x) < half[one] + half[other]), (one.text, other.text)


def test_labels_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(architecture, "GLYPH_SHARE", 5.0)
    with pytest.raises(ValueError, match="labels that do not fit: .*Request unit"):
        architecture.svg()


# -- what pages name --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}, target


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_files_that_are_named_exist(path):
    named = re.findall(r"\b((?:boards|hdl|sim|dse|tests|docs|examples|benchmarks)/[\w./-]*[\w/])", path.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_functions_of_the_simulation_path_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.split("## The path of one simulation")[1].split("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| ") and "---" not in line]
    for _, _, functions, places, _ in rows[1:]:
        files = [file for place in re.findall(r"`([^`]+)`", places) for file in
                 (sorted((ROOT / place).glob("*.py")) if place.endswith("/") else [ROOT / place])]
        sources = "".join(file.read_text(encoding="utf-8") for file in files)
        for name in re.findall(r"`(\w+)`", functions):
            assert f"def {name}(" in sources, name


def test_readme_repeats_the_makefile():
    makefile, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "README.md"))
    workload = re.search(r"^WORKLOAD := (.+)$", makefile, re.MULTILINE)[1]
    simulate = re.search(r"nearmac simulate (.+)$", makefile, re.MULTILINE)[1].replace("$(WORKLOAD)", workload)
    assert f"`.venv/bin/nearmac simulate {simulate}`" in readme
    for line in re.findall(r"^\t.*\$\(VENV\)/bin/(ruff .+|mypy .+|python -m pytest .+)$", makefile, re.MULTILINE):
        assert f"`.venv/bin/{line}`" in readme


# -- what pages show --------------------------------------------------------------------------------------------------


def test_pages_show_commands_of_every_kind():
    assert {arguments[0] for arguments in commands()} == {"simulate", "emit", "synth", "boards", "networks", "sweep", "export",
                                                          "explain", "roofline", "memory"}


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_commands_are_understood(arguments, monkeypatch):
    """Parsed, not run; files and boards that they name must load."""
    monkeypatch.chdir(ROOT)
    group = typer.main.get_command(app)
    with group.make_context("nearmac", list(arguments), resilient_parsing=True) as parent:
        name, command, rest = group.resolve_command(parent, list(arguments))
        with command.make_context(name, rest, parent=parent) as context:
            given = context.params
    if given.get("board"):
        load_board(given["board"])
    if given.get("design"):
        load_design(given["design"])
    if given.get("scalesim_config"):
        load_config(given["scalesim_config"])
    workload = given.get("workload") or (given.get("name") if name == "networks" else None) or ""
    if workload.endswith((".yaml", ".csv")):
        load_workload(workload)


def test_boards_commands_run(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    for arguments in ([], ["papilio-pro"], ["examples/my-board.yaml"]):
        assert run_command(["boards", *arguments]) == 0
        assert capsys.readouterr().out


@pytest.mark.parametrize("block", [block for path in PAGES for block in code_blocks(path, "python")], ids=lambda block: block[:30])
def test_python_blocks_run(block, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(compile(block, "block", "exec"), {"__name__": "block"})  # they are our own
    assert "False" not in capsys.readouterr().out


def test_example_script_runs(capsys):
    runpy.run_path(str(EXAMPLES / "simulate_layer.py"))["main"]("amaranth")
    assert re.findall(r"^(\d+x\d+x\d+): \d+ cycles", capsys.readouterr().out, re.MULTILINE)[0] == "4x3x1"


def test_example_files_load():
    layer, design = load_layer(EXAMPLES / "layer.yaml"), load_design(EXAMPLES / "design.yaml")
    board = load_board(EXAMPLES / "my-board.yaml")
    assert (layer.OY, layer.PT, layer.lo) == (4, 1, 10)
    assert design.array == "4x3x1"
    assert board.device.name == "xc6slx16" and board.ceiling("luts").value == 60
