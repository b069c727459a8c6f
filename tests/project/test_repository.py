"""Files for tools around the repository: CI, pre-commit and editors."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_pre_commit_calls_the_linters_of_make_lint():
    recipe = (ROOT / "Makefile").read_text().split("\nlint:")[1].split("\n\n")[0]
    expected = [
        line.strip().replace("@$(BIN)", ".venv/bin")
        for line in recipe.splitlines()
        if line.startswith("\t@$(BIN)")
    ]
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert [hook["entry"] for hook in hooks] == expected


def test_the_workflow_runs_the_checks_of_ci():
    workflow = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())
    commands = [step.get("run") for step in workflow["jobs"]["checks"]["steps"]]
    assert ".ci/run" in commands
