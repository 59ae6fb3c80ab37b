"""In CI a skipped test fails the run and says why; elsewhere it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ONE_SKIP = "import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip('no such tool')\n"
MODULE_SKIP = "import pytest\npytest.skip('no such package', allow_module_level=True)\n"


def run(tmp_path: Path, content: str, ci: str, *options: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_x.py").write_text(content)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")} | {"CI": ci}
    return subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("options", [(), ("-n", "1")])
@pytest.mark.parametrize(("content", "reason"), [(ONE_SKIP, "no such tool"), (MODULE_SKIP, "no such package")])
def test_a_skip_fails_the_run_in_ci(tmp_path, content, reason, options):
    done = run(tmp_path, content, "true", *options)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert reason in done.stdout and "skipped tests fail the run in CI" in done.stdout


def test_a_skip_is_fine_elsewhere(tmp_path):
    assert run(tmp_path, ONE_SKIP, "").returncode == pytest.ExitCode.OK


def test_no_skip_is_fine_in_ci(tmp_path):
    assert run(tmp_path, "def test_a(): pass\n", "true").returncode == pytest.ExitCode.OK
