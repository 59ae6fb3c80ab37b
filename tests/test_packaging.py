"""The layout's rules: who imports whom, names and sizes of files, and what the wheel installs."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {"boards": {"boards"}, "hdl": {"boards", "hdl"}, "sim": {"hdl", "sim"}, "dse": {"boards", "hdl", "sim", "dse"}}
PACKAGES = tuple(MAY_IMPORT)
MAX_LINES = 400
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(path: Path) -> set[str]:
    """Dotted names that a module imports, wherever in it; relative ones made absolute."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(parts[: len(parts) - node.level]) if node.level else ""
            origin = ".".join(filter(None, (base, node.module)))
            found |= {f"{origin}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_run_one_way(path):
    package = path.relative_to(ROOT).parts[0]
    ours = {name for name in imports(path) if name.split(".")[0] in PACKAGES}
    wrong = {name for name in ours if name.split(".")[0] not in MAY_IMPORT[package]}
    if not path.is_relative_to(ROOT / "dse" / "cli"):  # the command is a thin face: nothing stands on it
        wrong |= {name for name in ours if name == "dse.cli" or name.startswith("dse.cli.")}
    assert wrong == set()
    assert not any(name == "tests" or name.startswith("tests.") for name in imports(path))


def test_the_reader_of_imports_sees_all_forms(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "dse" / "workload" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text("import a.b as c\nfrom d import e\nfrom . import f\nfrom ..g import h\ndef i():\n    import j\n")
    assert imports(path) == {"a.b", "d.e", "dse.workload.f", "dse.g.h", "j"}


def test_file_names_and_sizes():
    assert [name_of(p) for p in MODULES if p.stem.strip("_") in ("utils", "util", "helpers", "helper", "common", "misc")] == []
    lines = {name_of(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_every_folder_with_modules_is_a_package():
    folders = {path.parent for path in MODULES}
    assert [name_of(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from a copy: setuptools leaves files behind that would get into the next one."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, source)
    (source / "tests").mkdir()
    (source / "tests" / "__init__.py").touch()  # must stay out
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet",
                           "--wheel-dir", out, source], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_the_four_packages_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name for name in names if not name.startswith("nearmac-0.1.0.dist-info/")}
    expected = {name_of(path) for package in PACKAGES for path in (ROOT / package).rglob("*")
                if path.is_file() and "__pycache__" not in path.parts}
    assert inside == expected
    assert {name.split("/")[0] for name in inside} == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= inside
    assert "nearmac-0.1.0.dist-info/licenses/LICENSE" in names


def test_the_wheel_has_one_console_script(wheel):
    text = zipfile.ZipFile(wheel).read("nearmac-0.1.0.dist-info/entry_points.txt").decode()
    assert text.split() == ["[console_scripts]", "nearmac", "=", "dse.cli.main:main"]


def test_boards_load_from_the_wheel(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import boards; "
            "assert boards.__file__.startswith(sys.argv[1]); "
            "print(*(boards.load_board(name).name for name in boards.list_boards()))")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "site")], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(path.stem for path in (ROOT / "boards" / "profiles").glob("*.yaml"))
