"""Forks of the process that has loaded an app (qa/histories/forks.py)."""

import subprocess
import sys

import psutil
import pytest

from tests.serving import ROOT, SECRET, wait_for

PROGRAM = f"""
import sys, time
from pathlib import Path
from qa.histories.forks import ForkedGunicorn

folder = sys.argv[1]
env = {{"DATABASE_URL": f"sqlite:///{{folder}}/shop.db", "INSTANCE_PATH": folder,
       "PYTHONPATH": "{ROOT}", "SECRET_KEY": "{SECRET}"}}
print(ForkedGunicorn(Path(folder, "log"), env).start().pid, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_forks_end_with_a_run_that_is_killed(tmp_path):
    command = [sys.executable, "-c", PROGRAM, tmp_path]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        try:
            main = psutil.Process(int(run.stdout.readline()))
            (worker,) = wait_for(main.children, "gunicorn has a worker")
        finally:
            run.kill()
    _, alive = psutil.wait_procs([main, worker], timeout=120)
    assert alive == []
