"""The package's names: there, imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import boards


def test_every_name_is_there():
    assert set(boards._HOMES) == set(boards.__all__) <= set(dir(boards))
    for name in boards.__all__:
        assert getattr(boards, name).__module__.startswith("boards.") if hasattr(getattr(boards, name), "__module__") else True
    from boards import BUS_BITS, load_board

    assert load_board("papilio-pro").name == "papilio-pro" and 16 in BUS_BITS


def test_no_other_name_is():
    with pytest.raises(AttributeError, match="^module 'boards' has no attribute 'load_bord'$"):
        boards.load_bord  # noqa: B018


def test_errors_alone_need_no_schema():
    code = "import sys, boards.errors; print([name for name in ('pydantic', 'yaml', 'boards.schema') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
