"""Clients of the same six generators for the document of the legacy API: no warnings, correct types.

tests/openapi/test_generators.py and tests/openapi/test_clients.py use the clients of the native document.
"""

import json
import shutil

import pytest

from app import create_app
from tests.npm import install, needs_node
from tests.openapi.generators import (
    GENERATORS,
    STRICT,
    generate_client,
    generate_models,
    needs_java,
)
from tests.openapi.test_clients import CLIENTS, run
from tests.serving import SECRET

pytestmark = [pytest.mark.slow, pytest.mark.one_database]


@pytest.fixture
def folder(tmp_path):
    """A folder with the document of version 3 of the legacy API."""
    app = create_app(
        {
            "DATABASE_URL": f"sqlite:///{tmp_path}/shop.db",
            "SECRET_KEY": SECRET,
            "INSTANCE_PATH": str(tmp_path),
        }
    )
    document = app.test_client().get("/wc-api/v3/openapi.json").get_json()
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    return tmp_path


def use_npm(folder, tools):
    """Make the programs of a folder with a package.json available in another folder."""
    (folder / "node_modules").symlink_to(install(tools))
    shutil.copy(tools / "package.json", folder)


def check_types(folder, *files):
    """Check the types of generated TypeScript."""
    options = [
        "--strict", "--noEmit", "--skipLibCheck", "--target", "es2022", "--module", "esnext",
        "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable", "--types", "node",
    ]  # fmt: skip
    run("npx", "tsc", *options, *files, cwd=folder)


@needs_node
def test_orval(folder):
    use_npm(folder, GENERATORS)
    (folder / "orval.config.mjs").write_text(
        "export default {shop: {input: 'openapi.json', "
        "output: {target: 'client/shop.ts', client: 'fetch'}}}"
    )
    assert "warn" not in run("npx", "orval", cwd=folder).lower().replace("npm warn", "")
    check_types(folder, "client/shop.ts")


@needs_node
def test_hey_api(folder):
    use_npm(folder, GENERATORS)
    output = run("npx", "openapi-ts", "-i", "openapi.json", "-o", "client", cwd=folder)
    assert "warning" not in output.lower()
    check_types(folder, "client/index.ts")


@needs_node
def test_openapi_typescript(folder):
    use_npm(folder, CLIENTS / "typescript")
    run("npx", "openapi-typescript", "openapi.json", "-o", "shop.ts", cwd=folder)
    check_types(folder, "shop.ts")


def test_openapi_python_client(folder):
    command = "openapi-python-client", "generate", "--path=openapi.json", "--meta=none"
    output = run(*command, "--output-path=shop_client", cwd=folder)
    assert "warning" not in output.lower()
    # Not client.py, which is the same for every document: it overrides a method of httpx wrongly.
    generated = "shop_client/api", "shop_client/models"
    run(*STRICT, "--follow-imports=silent", *generated, cwd=folder)


def test_datamodel_code_generator(folder):
    generate_models(folder)


@needs_java
def test_openapi_generator(folder):
    generate_client(folder)
