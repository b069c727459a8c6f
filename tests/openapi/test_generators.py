"""Clients of other generators, each with the natural calls of its users against a running service.

tests/openapi/test_clients.py tests the two clients of docs/clients.md in more depth.
"""

import re
import shutil

import pytest

from tests.npm import install, needs_node
from tests.openapi.generators import GENERATORS, generate_client, generate_models, needs_java
from tests.openapi.test_clients import run, shop  # noqa: F401  # a fixture
from tests.serving import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.one_database]


@pytest.fixture
def folder(tmp_path):
    """A folder with the document."""
    shutil.copy(ROOT / "openapi.json", tmp_path)
    return tmp_path


@pytest.fixture
def npm_folder(folder):
    """A folder with the document and the generators from npm."""
    (folder / "node_modules").symlink_to(install(GENERATORS))
    for name in ("package.json", "tsconfig.json"):
        shutil.copy(GENERATORS / name, folder)
    return folder


def check_and_run(folder, name, env):
    """Check the types of a generated client and of its use, and run the use."""
    shutil.copy(GENERATORS / name, folder)
    run("npx", "tsc", cwd=folder)
    bundle = ["--bundle", "--platform=node", "--format=esm", "--target=node20", "--outfile=out.mjs"]
    run("npx", "esbuild", name, *bundle, "--log-level=warning", cwd=folder)
    run("node", "out.mjs", cwd=folder, env=env)


@needs_node
def test_orval(npm_folder, shop):  # noqa: F811  # the imported fixture
    (npm_folder / "orval.config.mjs").write_text(
        "export default {shop: {input: 'openapi.json', output: {target: 'client/shop.ts', "
        f"client: 'fetch', baseUrl: '{shop['SHOP_URL']}'}}}}}}"
    )
    assert "warn" not in run("npx", "orval", cwd=npm_folder).lower().replace("npm warn", "")
    check_and_run(npm_folder, "orval.ts", shop)
    types = set(
        re.findall(r"^export type (\w+)", (npm_folder / "client/shop.ts").read_text(), re.M)
    )
    assert [name for name in types if re.search(r"(Create|Update|Input|BulkItem)[A-Z]\w*$", name)
            and not re.search("(Request|Response|Params|Success|Error|Metadata)", name)] == []  # fmt: skip


@needs_node
def test_hey_api(npm_folder, shop):  # noqa: F811  # the imported fixture
    output = run("npx", "openapi-ts", "-i", "openapi.json", "-o", "client", cwd=npm_folder)
    assert "warning" not in output.lower()
    types = (npm_folder / "client" / "types.gen.ts").read_text()
    assert "Writable" not in types
    check_and_run(npm_folder, "hey-api.ts", shop)


def test_datamodel_code_generator(folder, shop):  # noqa: F811  # the imported fixture
    shutil.copy(GENERATORS / "pydantic_models.py", folder)
    generate_models(folder, "pydantic_models.py")
    run("python", "-W", "error", "pydantic_models.py", cwd=folder, env=shop)


@needs_java
def test_openapi_generator(folder, shop):  # noqa: F811  # the imported fixture
    generate_client(folder)
    shutil.copy(GENERATORS / "openapi_generator.py", folder)
    run("python", "openapi_generator.py", cwd=folder, env=shop)
