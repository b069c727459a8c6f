"""Two generators that the tests of each OpenAPI document use in the same way."""

import re
import shutil

import pytest

from tests.openapi.test_clients import CLIENTS, run

GENERATORS = CLIENTS / "generators"
STRICT = ["mypy", "--strict", "--config-file=", "--python-version=3.11"]

needs_java = pytest.mark.skipif(
    not shutil.which("java"), reason="no Java: openapi-generator is not tested"
)

# What openapi-generator prints for every document, also for one with a single operation, for a map of
# any JSON values, which metadata is, and for parameters whose names Python reserves (`in`, and `from`
# of reports), of which it makes no model at all.
_ALWAYS = re.compile(
    "OpenAPI 3.1 support is still in beta|Failed to get the schema name: null"
    r"|Codegen property is null \(e.g. map/dict of undefined type\)"
    r"|(?:In|From) \(reserved word\) cannot be used as model name"
)


def generate_models(folder, *programs):
    """Generate ``shop_models.py`` with datamodel-code-generator, and check its types.

    Args:
        folder: the folder with the document.
        programs: names of programs in the folder that use the models.
    """
    run(
        *["python", "-W", "error", "-m", "datamodel_code_generator", "--input=openapi.json"],
        *["--input-file-type=openapi", "--output=shop_models.py", "--use-annotated"],
        *["--output-model-type=pydantic_v2.BaseModel", "--formatters=builtin"],
        cwd=folder,
    )
    models = (folder / "shop_models.py").read_text()
    assert re.findall(r"^class (\w*[0-9])\(", models, re.MULTILINE) == []
    run(*STRICT, "shop_models.py", *programs, cwd=folder)


def generate_client(folder):
    """Generate ``shop_api_client`` with openapi-generator without a warning, and check its types."""
    output = run(
        *["openapi-generator-cli", "generate", "-i", "openapi.json", "-g", "python", "-o", "."],
        "--additional-properties=packageName=shop_api_client",
        cwd=folder,
    )
    warnings = [line for line in output.splitlines() if " WARN " in line]
    assert [line for line in warnings if not _ALWAYS.search(line)] == []
    run("mypy", "--config-file=", "--python-version=3.11", "shop_api_client", cwd=folder)
