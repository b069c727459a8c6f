"""Files for tools around the repository: CI, pre-commit and editors."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_pre_commit_calls_the_linters_of_make_lint():
    recipe = (ROOT / "Makefile").read_text().split("\nlint:")[1].split("\nlint-document:")[0]
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


# A check of a linter that is switched off, at the end of a line without a reason.
OPT_OUT = re.compile(
    r"# (type: ignore(\[[^]]*\])?|noqa(: [A-Z0-9, ]+)?|nosec( B[0-9]+)?)$", re.MULTILINE
)


def test_each_opt_out_of_a_check_has_a_reason():
    folders = ("app", "migrations", "qa", "server", "tests", "tools")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    found = {str(path): OPT_OUT.search(path.read_text()) for path in paths}
    assert {name: match[0] for name, match in found.items() if match} == {}
