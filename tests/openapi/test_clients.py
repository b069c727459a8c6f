"""Clients that are generated from openapi.json, with a running service."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases import SHARED_FOLDER
from tests.npm import install, needs_node
from tests.serving import ROOT

CLIENTS = Path(__file__).parents[1] / "clients"
DOCS = (ROOT / "docs" / "clients.md").read_text()
TOOLS = Path(sys.executable).parent
EXAMPLE = re.compile(r"created \d+ 15\.00\n1 .*advent-2030")


def documented(language):
    """Return the code that docs/clients.md shows in a language."""
    return "\n".join(re.findall(rf"^```{language}\n(.+?)^```$", DOCS, re.DOTALL | re.MULTILINE))


def generate(tool, folder):
    """Run the documented command of a generator in a folder."""
    shutil.copy(ROOT / "openapi.json", folder)
    lines = documented("console").splitlines()
    (command,) = (line for line in lines if line.startswith(f"$ {tool} "))
    run(*shlex.split(command.removeprefix("$ ")), cwd=folder)


def run(*command, **over):
    """Run a program, which must succeed, and return what it printed.

    mypy checks the same libraries for each client, so it keeps them as long as this process. Java
    programs run for seconds, so their code is not optimized, which takes half of their CPU time.
    """
    environment = {
        "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "MYPY_CACHE_DIR": f"{os.environ[SHARED_FOLDER]}/mypy-{os.getpid()}",
    } | over.pop("env", {})
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        **over,
    )
    assert done.returncode == 0, f"{shlex.join(done.args)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_python_client(shop, tmp_path):
    generate("openapi-python-client", tmp_path)
    nameless = [
        path.name for path in (tmp_path / "shop_client" / "models").glob("*_type_[0-9]*.py")
    ]
    assert not nameless, "a schema of its own would give these types a name"
    (tmp_path / "example.py").write_text(documented("python"))
    shutil.copy(CLIENTS / "python" / "exchange.py", tmp_path)
    strict = [
        "mypy",
        "--strict",
        "--config-file=",
        "--python-version=3.11",
        "--follow-imports=silent",
    ]
    # Not client.py, which is the same for every document: it overrides a method of httpx wrongly.
    generated = ["shop_client/api", "shop_client/models"]
    run(*strict, "exchange.py", "example.py", *generated, cwd=tmp_path)
    run("python", "-W", "error", "exchange.py", cwd=tmp_path, env=shop)
    assert EXAMPLE.match(run("python", "-W", "error", "example.py", cwd=tmp_path, env=shop))


@pytest.mark.slow
@needs_node
def test_typescript_client(shop, tmp_path):
    (tmp_path / "node_modules").symlink_to(install(CLIENTS / "typescript"))
    for name in ("package.json", "tsconfig.json", "exchange.ts"):
        shutil.copy(CLIENTS / "typescript" / name, tmp_path)
    (tmp_path / "example.ts").write_text(documented("typescript"))
    generate("npx openapi-typescript", tmp_path)
    # Checks the types; writes nothing when they are wrong.
    run("node_modules/.bin/tsc", cwd=tmp_path)
    generate("npx tsc", tmp_path)
    run("node", "out/exchange.js", cwd=tmp_path, env=shop)
    assert EXAMPLE.match(run("node", "out/example.js", cwd=tmp_path, env=shop))
