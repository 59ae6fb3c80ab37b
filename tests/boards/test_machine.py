"""Reference machines: what follows from their figures, and files of one's own."""

from __future__ import annotations

import pytest

from boards import InputError, load_board, load_machine

MINE = "name: mine\npeak_gops: {int8: 1000, fp16: {value: 500, source: page 2}}\nmemory_mb_s: 50_000\nmemory_mib: 1024\ndevices: 4\n"


def message(call, *args) -> str:
    with pytest.raises(InputError) as caught:
        call(*args)
    return str(caught.value)


def test_a_machine_of_ones_own(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(MINE.replace("50_000", "50000"))
    mine = load_machine(path)
    assert mine == load_machine(str(path))
    assert (mine.total_gops("int8"), mine.total_gops("fp16"), mine.total_memory_mb_s) == (4000, 2000, 200_000)
    assert (mine.ridge_ops_per_byte("int8"), mine.ridge_ops_per_byte("fp16")) == (20, 10)
    assert mine.total_memory_bytes == 4 * 2**30


@pytest.mark.parametrize(("old", "new", "expected"), [
    ("50_000", "50_000", "memory_mb_s: must be a number of MB/s, got '50_000'; allowed: above 0 to 1000000000000 (MB/s)"),
    ("int8: 1000", "int8: -1", "peak_gops.int8: out of range, got -1; allowed: above 0 to 1000000000000 (Gop/s)"),
    ("{int8: 1000, fp16: {value: 500, source: page 2}}", "{}", "peak_gops: is empty, got {}; allowed: a mapping of names to figures"),
    ("{int8: 1000, fp16: {value: 500, source: page 2}}", "5",
     "peak_gops: must be a mapping, got 5; allowed: a mapping of names to figures"),
    ("devices: 4", "device: 4", "device: unknown key, got 4; allowed: name, title, peak_gops, memory_mb_s, memory_mib, devices, link, "
                                "link_mb_s, clock_mhz, source, trust, notes; nearest valid key: `devices`"),
])
def test_errors_name_the_file_and_the_key(tmp_path, old, new, expected):
    path = tmp_path / "my.yaml"
    path.write_text(MINE.replace("50_000", "50000").replace(old.replace("50_000", "50000"), new))
    assert message(load_machine, path) == f"{path}: {expected}"


def test_unknown_names():
    assert message(load_machine, "dgx1") == (
        "machine: unknown machine, got 'dgx1'; allowed: dgx-1, gtx-1050-ti, gtx-1080-ti, mos-6502, p100-pcie, p100-pcie-12gb, p100-sxm2, "
        "snowflake, titan-x-pascal; nearest: dgx-1")


def test_a_machine_is_no_board():
    assert message(load_board, "dgx-1") == ("--board: dgx-1 is a reference machine: it has no FPGA to build a design on, got 'dgx-1'; "
                                            "choose a board of `nearmac boards`")
