"""The ``nearmac`` command: its entry point and exit statuses.

0 done; 1 the run found a mismatch; 2 the user's input is wrong; 3 an external tool failed; 130 interrupted. Only typer is imported
before a command runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, TextIO

import typer

from dse.cli import boards, emit, explain, export, memory, networks, roofline, simulate, sweep, synth

MISMATCH, BAD_INPUT, TOOL_FAILED, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(name="nearmac", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
                  help="Explore FPGA accelerators for neural networks: hardware, simulation and exact prediction from one design.",
                  epilog="Exit status: 0 done, 1 mismatch, 2 wrong input, 3 an external tool failed, 130 interrupted.")
app.command("simulate")(simulate.simulate)
app.command("sweep")(sweep.sweep)
app.command("emit")(emit.emit)
app.command("synth")(synth.synth)
app.command("boards")(boards.boards)
app.command("networks")(networks.networks)
app.command("explain")(explain.explain)
app.command("roofline")(roofline.roofline)
app.command("export")(export.export)
app.command("memory")(memory.memory)

# The base class of usage errors: it is typer's own in some versions and click's in others.
_UsageError: type[Any] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("nearmac")
        except PackageNotFoundError:
            found = "(source)"
        print(f"nearmac {found}")
        raise typer.Exit


@app.callback()
def _options(version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True,
                                                   help="Show the version and exit.")] = False) -> None:
    pass


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (``sys.argv`` by default); the exit status. Errors go to stderr, one message each."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output left
        _silence(sys.stdout)
        return 128 + 13
    except OSError as error:
        _silence(sys.stdout)
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}", BAD_INPUT)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        command = typer.main.get_command(app)
        status = command.main(args=None if arguments is None else list(arguments), prog_name="nearmac", standalone_mode=False)
        if status == INTERRUPTED:  # typer has caught the interrupt already
            return _fail("interrupted", INTERRUPTED)
        return int(status or 0)
    except _UsageError as error:
        return _fail(_usage_text(error), BAD_INPUT)
    except typer.Abort:
        return _fail("interrupted", INTERRUPTED)
    except MemoryError:
        return _fail("out of memory: use a smaller layer", BAD_INPUT)
    except (ValueError, RuntimeError) as error:
        from hdl.errors import InputError, ToolError
        from sim.errors import SimulationError

        for kind, status in ((InputError, BAD_INPUT), (ToolError, TOOL_FAILED), (SimulationError, MISMATCH)):
            if isinstance(error, kind):
                return _fail(str(error), status)
        raise


def _usage_text(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "nearmac")
    text = " ".join(error.format_message().split())
    return f"{text.rstrip('.')}; see `{path} --help`"


def _fail(message: str, status: int) -> int:
    try:
        print(message if status == INTERRUPTED else f"error: {message}", file=sys.stderr, flush=True)
    except OSError:  # nobody can be told, but the status
        _silence(sys.stderr)
    return status


def _silence(stream: TextIO) -> None:
    """What ``stream`` still buffers cannot be written: drop it, or Python would complain once more at exit."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def _open_standard_streams() -> None:
    """Where stdout or stderr was closed, what is written there is dropped; and no file that is opened later gets its number."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))


def _terminate(number: int, _: object) -> None:
    """End as the signal wants, but through every ``finally``: unfinished files go."""
    sys.exit(128 + number)


def main() -> None:
    """The console script."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # file names hold whatever they like
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminate)
    sys.exit(run())


if __name__ == "__main__":
    main()
