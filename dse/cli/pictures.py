"""The file of ``--plot``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dse.cli.files import OutputFile
from dse.plot.style import check_path, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def picture_file(path: str | None) -> Iterator[OutputFile | None]:
    """Ready to be written; None where no picture is asked for. Raises InputError before any long work."""
    if path is None:
        yield None
        return
    check_path(path)
    with OutputFile(path, option="--plot") as file:
        yield file


def save_picture(figure: Figure, file: OutputFile) -> None:
    """Put the picture at its name. Raises InputError."""
    try:
        save(figure, file.temporary)
    except OSError as error:
        raise file.unwritable(error) from None
    file.commit()
