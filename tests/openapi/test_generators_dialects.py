"""Clients of the same generators for the documents of the legacy API and of wc/v3.

Each is generated without a warning, its types are correct, and a program in
``tests/clients/generators/`` makes the natural calls of its users against a running service.
"""

import shutil
from urllib.request import urlopen

import pytest

from tests.npm import needs_node
from tests.openapi.generators import (
    GENERATORS,
    STRICT,
    check_and_run,
    check_types,
    generate_client,
    generate_models,
    needs_java,
    use_npm,
)
from tests.openapi.test_clients import CLIENTS, run

pytestmark = pytest.mark.slow

DIALECTS = {"legacy": "/wc-api/v3", "wc3": "/wp-json/wc/v3"}


@pytest.fixture(params=DIALECTS)
def folder(request, shop, tmp_path):
    """A folder with the document of a dialect, and the programs that use it."""
    with urlopen(f"{shop['SHOP_URL']}{DIALECTS[request.param]}/openapi.json") as response:
        (tmp_path / "openapi.json").write_bytes(response.read())
    for program in (GENERATORS / request.param).iterdir():
        shutil.copy(program, tmp_path)
    return tmp_path


@needs_node
def test_orval(folder, shop):
    use_npm(folder)
    root = shop["SHOP_URL"] + ("/wp-json/wc/v3" if "wc3" in folder.name else "")
    (folder / "orval.config.mjs").write_text(
        "export default {shop: {input: 'openapi.json', output: {target: 'client/shop.ts', "
        f"client: 'fetch', baseUrl: '{root}'}}}}}}"
    )
    assert "warn" not in run("node_modules/.bin/orval", cwd=folder).lower().replace("npm warn", "")
    check_and_run(folder, "orval.ts", shop)


@needs_node
def test_hey_api(folder, shop):
    use_npm(folder)
    output = run("node_modules/.bin/openapi-ts", "-i", "openapi.json", "-o", "client", cwd=folder)
    assert "warning" not in output.lower()
    check_and_run(folder, "hey-api.ts", shop)


@needs_node
def test_openapi_typescript(folder, shop):
    use_npm(folder, CLIENTS / "typescript")
    run("node_modules/.bin/openapi-typescript", "openapi.json", "-o", "shop.ts", cwd=folder)
    check_and_run(folder, "openapi-fetch.ts", shop)


def test_openapi_python_client(folder, shop):
    command = "openapi-python-client", "generate", "--path=openapi.json", "--meta=none"
    output = run(*command, "--output-path=shop_client", cwd=folder)
    assert "warning" not in output.lower()
    # Not client.py, which is the same for every document: it overrides a method of httpx wrongly.
    generated = "shop_client/api", "shop_client/models", "python_client.py"
    run(*STRICT, "--follow-imports=silent", *generated, cwd=folder)
    run("python", "-W", "error", "python_client.py", cwd=folder, env=shop)


def test_datamodel_code_generator(folder, shop):
    generate_models(folder, "pydantic_models.py")
    run("python", "-W", "error", "pydantic_models.py", cwd=folder, env=shop)


@needs_java
def test_openapi_generator(folder, shop):
    generate_client(folder)
    run("python", "openapi_generator.py", cwd=folder, env=shop)


@needs_java
@needs_node
def test_openapi_generator_for_other_languages(folder):
    use_npm(folder)
    generate_client(folder, "java", "java")
    generate_client(folder, "typescript-fetch", "client")
    check_types(folder, "client/index.ts")
