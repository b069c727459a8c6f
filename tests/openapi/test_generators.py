"""Clients of other generators, each with the natural calls of its users against a running service.

tests/openapi/test_clients.py tests the two clients of docs/clients.md in more depth.
"""

import re
import shutil

import pytest

from tests.npm import needs_node
from tests.openapi.generators import (
    GENERATOR_JAR,
    GENERATORS,
    check_and_run,
    generate_client,
    generate_models,
    needs_java,
    needs_javac,
    use_npm,
)
from tests.openapi.test_clients import run
from tests.serving import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    """A folder with the document."""
    shutil.copy(ROOT / "openapi.json", tmp_path)
    return tmp_path


@pytest.fixture
def npm_folder(folder):
    """A folder with the document, the generators from npm, and the programs that use clients."""
    use_npm(folder)
    for program in GENERATORS.glob("*.ts"):
        shutil.copy(program, folder)
    return folder


@needs_node
def test_orval(npm_folder, shop):
    (npm_folder / "orval.config.mjs").write_text(
        "export default {shop: {input: 'openapi.json', output: {target: 'client/shop.ts', "
        f"client: 'fetch', baseUrl: '{shop['SHOP_URL']}'}}}}}}"
    )
    assert "warn" not in run("node_modules/.bin/orval", cwd=npm_folder).lower().replace(
        "npm warn", ""
    )
    check_and_run(npm_folder, "orval.ts", shop)
    types = set(
        re.findall(r"^export type (\w+)", (npm_folder / "client/shop.ts").read_text(), re.M)
    )
    assert [name for name in types if re.search(r"(Create|Update|Input|BulkItem)[A-Z]\w*$", name)
            and not re.search("(Request|Response|Params|Success|Error|Metadata|Import)", name)] == []  # fmt: skip


@needs_node
def test_hey_api(npm_folder, shop):
    output = run(
        "node_modules/.bin/openapi-ts", "-i", "openapi.json", "-o", "client", cwd=npm_folder
    )
    assert "warning" not in output.lower()
    types = (npm_folder / "client" / "types.gen.ts").read_text()
    assert "Writable" not in types
    check_and_run(npm_folder, "hey-api.ts", shop)


def test_datamodel_code_generator(folder, shop):
    shutil.copy(GENERATORS / "pydantic_models.py", folder)
    generate_models(folder, "pydantic_models.py")
    run("python", "-W", "error", "pydantic_models.py", cwd=folder, env=shop)


@needs_java
def test_openapi_generator(folder, shop):
    generate_client(folder)
    shutil.copy(GENERATORS / "openapi_generator.py", folder)
    run("python", "openapi_generator.py", cwd=folder, env=shop)


@needs_java
@needs_node
def test_openapi_generator_for_typescript(npm_folder, shop):
    generate_client(npm_folder, "typescript-fetch", "client")
    check_and_run(npm_folder, "typescript-fetch.ts", shop)


@needs_javac
def test_openapi_generator_for_java(folder, shop):
    generate_client(folder, "java")
    sources = [*folder.glob("src/main/java/**/*.java"), *GENERATORS.glob("java/**/*.java")]
    path = f"{GENERATOR_JAR}:classes"
    run("javac", "-nowarn", "-d", "classes", "-cp", GENERATOR_JAR, *sources, cwd=folder)
    run("java", "-cp", path, "Exchange", cwd=folder, env=shop)
