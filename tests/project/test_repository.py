"""The files for code hosting sites, editors and hooks name the checks that exist."""

import os
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_workflow_calls_the_checks_of_every_machine():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    (job,) = workflow["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == [".ci/run"]
    assert os.access(ROOT / commands[0], os.X_OK)


def test_hooks_call_the_linters_of_make_lint():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    (lint,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = re.findall(r"@\$\(BIN\)/(.*)", lint)
    entries = [hook["entry"].removeprefix(".venv/bin/") for hook in repository["hooks"]]
    assert len(entries) == len(commands)
    for entry, command in zip(entries, commands, strict=True):
        assert command.startswith(entry)


def test_templates_name_commands_of_the_makefile():
    text = "\n".join(path.read_text() for path in (ROOT / ".github").rglob("*.md"))
    named = set(re.findall(r"`make ([a-z-]+)`", text))
    assert named
    assert named <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
