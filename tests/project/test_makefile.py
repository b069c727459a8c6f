"""``make setup`` installs with uv where it is available, and otherwise with pip."""

import os
import pty
import shutil
import subprocess
from contextlib import suppress

import pytest

from tests.serving import ROOT

PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >>calls
case "$*" in
    *"venv --quiet"*) mkdir -p .venv/bin && cp fake .venv/bin/python ;;
    *"venv .venv"*) mkdir -p .venv/bin && cp fake .venv/bin/python ;;
    *" install "*"-r requirements.txt")
        [ "$(basename "$0")" = uv ] && exit "$UV_STATUS"
        echo "Collecting one"; echo "Downloading one"; echo "Processing ./two.whl"
        echo "reason of pip" >&2
        exit "$PIP_STATUS" ;;
esac
"""
"""Stands for Python and for uv, and notes how it was called."""


def _all_of(terminal):
    """Return what was written to a terminal. On a busy machine, it arrives in several parts."""
    parts = []
    with suppress(OSError):  # which Linux raises at the end
        while part := os.read(terminal, 10_000):
            parts.append(part)
    return b"".join(parts)


@pytest.fixture
def setup(tmp_path):
    """Return a function that runs ``make .venv/ready``; it returns the status, the output and the calls."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements.txt").write_text("one==1 --hash=x\ntwo==2 --hash=y\n")
    programs = tmp_path / "programs"
    programs.mkdir()

    def run(*, uv=None, pip=0, on_terminal=False):
        for name in ("fake", *(["programs/uv"] if uv is not None else []), "programs/python3"):
            (tmp_path / name).write_text(PROGRAM)
            (tmp_path / name).chmod(0o755)
        ours, theirs = pty.openpty()
        done = subprocess.run(
            ["make", "--silent", ".venv/ready"],
            cwd=tmp_path,
            env={"PATH": f"{programs}:/usr/bin:/bin", "UV_STATUS": str(uv), "PIP_STATUS": str(pip)},
            stdout=theirs if on_terminal else subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(theirs)
        output = _all_of(ours) if on_terminal else done.stdout
        os.close(ours)
        calls = (tmp_path / "calls").read_text().splitlines()
        installed = (tmp_path / ".venv" / "ready").exists()
        run.errors = done.stderr.decode()
        return (done.returncode == 0, installed), output.decode(), calls

    return run


def test_uv_installs_where_it_is_available(setup):
    succeeded, output, calls = setup(uv=0)
    assert succeeded == (True, True)
    assert "Installing 2 locked packages into .venv with uv ..." in output
    assert calls[-1] == (
        "uv pip install --quiet --python .venv/bin/python --require-hashes -r requirements.txt"
    )
    assert not any("-m pip" in call for call in calls)


def test_pip_installs_if_uv_fails(setup):
    succeeded, output, calls = setup(uv=2)
    assert succeeded == (True, True)
    assert "uv has failed (.venv/uv.log)." in output
    assert "with pip" in output
    assert calls[-1].startswith("python -m pip ")
    assert calls[-1].endswith("--quiet --quiet --use-pep517 --require-hashes -r requirements.txt")


@pytest.mark.parametrize("on_terminal", [False, True])
def test_pip_installs_without_uv(setup, on_terminal):
    succeeded, output, calls = setup(on_terminal=on_terminal)
    assert succeeded == (True, True)
    assert "python3 -m venv .venv" in calls
    bars = ["\r[====================                    ] 1 of 2", f"\r[{'=' * 40}] 2 of 2"]
    assert [bar in output for bar in bars] == [on_terminal] * 2
    assert "Downloading" not in output.partition("with pip")[2] or not on_terminal


@pytest.mark.parametrize("on_terminal", [False, True])
def test_failure_of_pip_ends_make(setup, on_terminal):
    succeeded, _, _ = setup(pip=1, on_terminal=on_terminal)
    assert succeeded == (False, False)
    assert "reason of pip" in setup.errors


def test_warnings_of_pip_do_not_interrupt_the_progress_bar(setup):
    assert setup(on_terminal=True)[0] == (True, True)
    assert "reason of pip" not in setup.errors
