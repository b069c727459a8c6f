"""What the tests of generators have in common for each OpenAPI document."""

import re
import shutil
from pathlib import Path

import openapi_generator_cli
import pytest

from tests.npm import install
from tests.openapi.test_clients import CLIENTS, run

GENERATORS = CLIENTS / "generators"
STRICT = ["mypy", "--strict", "--config-file=", "--python-version=3.11"]

needs_java = pytest.mark.skipif(
    not shutil.which("java"), reason="no Java: openapi-generator is not tested"
)

needs_javac = pytest.mark.skipif(
    not shutil.which("javac"), reason="no Java compiler: the client for Java is not compiled"
)
GENERATOR_JAR = Path(openapi_generator_cli.__file__).with_name("openapi-generator.jar")
"""Contains Jackson, which clients for Java use."""

# What openapi-generator prints for every document, also for one with a single operation, for a map of
# any JSON values, which metadata is, and for parameters whose names a language reserves (`in`, `from`
# of reports and `exclude`), of which it makes no model at all.
_ALWAYS = re.compile(
    "OpenAPI 3.1 support is still in beta|Failed to get the schema name: null"
    r"|Codegen property is null \(e.g. map/dict of undefined type\)"
    r"|(?:In|From|Import) \(reserved word\) cannot be used as model name"
    r"|Exclude \(model name matches existing language type\)"
)
_OPTIONS = {
    "python": "packageName=shop_api_client",
    "java": "library=native,openApiNullable=false,hideGenerationTimestamp=true",
    "typescript-fetch": "",
}


def generate_models(folder, *programs):
    """Generate ``shop_models.py`` with datamodel-code-generator, and check its types.

    Args:
        folder: the folder with the document.
        programs: names of programs in the folder that use the models.
    """
    run(
        *["python", "-W", "error", "-m", "datamodel_code_generator", "--input=openapi.json"],
        *["--input-file-type=openapi", "--output=shop_models.py", "--use-annotated"],
        *["--output-model-type=pydantic_v2.BaseModel", "--enum-field-as-literal=one"],
        "--formatters=builtin",
        cwd=folder,
    )
    models = (folder / "shop_models.py").read_text()
    assert re.findall(r"^class (\w*[0-9])\(", models, re.MULTILINE) == []
    run(*STRICT, "shop_models.py", *programs, cwd=folder)


def generate_client(folder, language="python", into="."):
    """Generate a client with openapi-generator, without a warning. Types of Python are checked."""
    output = run(
        *["openapi-generator-cli", "generate", "-i", "openapi.json", "-g", language, "-o", into],
        f"--additional-properties={_OPTIONS[language]}",
        cwd=folder,
    )
    warnings = [line for line in output.splitlines() if " WARN " in line]
    assert [line for line in warnings if not _ALWAYS.search(line)] == []
    if language == "python":
        run("mypy", "--config-file=", "--python-version=3.11", "shop_api_client", cwd=folder)


def use_npm(folder, tools=GENERATORS):
    """Make the programs of a folder with a package.json available in another folder."""
    (folder / "node_modules").symlink_to(install(tools))
    shutil.copy(tools / "package.json", folder)


def check_types(folder, *files):
    """Check the types of TypeScript."""
    options = [
        "--strict", "--noEmit", "--skipLibCheck", "--target", "es2022", "--module", "esnext",
        "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable", "--types", "node",
    ]  # fmt: skip
    run("node_modules/.bin/tsc", *options, *files, cwd=folder)


def check_and_run(folder, name, env):
    """Check the types of a generated client and of a program that uses it, and run the program."""
    check_types(folder, name)
    bundle = ["--bundle", "--platform=node", "--format=esm", "--target=node20", "--outfile=out.mjs"]
    esbuild = install(GENERATORS) / ".bin" / "esbuild"
    run(esbuild, name, *bundle, "--log-level=warning", cwd=folder)
    run("node", "out.mjs", cwd=folder, env=env)
