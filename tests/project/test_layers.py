"""The import layers of the architecture, checked from the imports of each module."""

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from app.blueprints import BUILTIN
from app.cli import COMMANDS

ROOT = Path(__file__).parents[2]
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in [*sorted((ROOT / "app").rglob("*.py")), ROOT / "wsgi.py"]
}

# A part is a package of app/, or a module directly in it. A part imports parts of the layers below it.
CORE = {
    "catalog", "config", "conversions", "errors", "pricing",
}  # fmt: skip
LAYERS = ["db", "models", "auth", "outbound", "services", "woocommerce", "api", "blueprints"]
TOP = {"admin", "app", "cli", "main", "plugin_api", "wsgi"}
MAY_IMPORT = {
    **dict.fromkeys(CORE, CORE),
    **{part: CORE | set(LAYERS[:position]) for position, part in enumerate(LAYERS)},
    "outbound": CORE,
    "worker": CORE | {"db", "models", "auth", "outbound", "services", "observability"},
    "schemas": CORE,
    "observability": CORE | {"db"},
    **dict.fromkeys(TOP, CORE | {*LAYERS, *TOP, "schemas", "worker", "observability"}),
}
MAY_IMPORT["import_export"] = CORE | {*LAYERS, "schemas"}
MAY_IMPORT["cli"] |= {"import_export"}
MAY_IMPORT["admin"] |= {"import_export"}
for part in ("api", "blueprints"):
    MAY_IMPORT[part] |= {"schemas"}
# A dialect of its own, beside the blueprints. Nothing imports it.
MAY_IMPORT["woocommerce_rest"] = CORE | {*LAYERS[:-1], "schemas"} - {"woocommerce"}
# A folder of services imports only the folders to its left.
SERVICES = [
    "common", "events", "webhooks", "coupons", "redemptions", "customers", "orders", "reports",
    "api_keys", "maintenance",
]  # fmt: skip
BELOW_THE_REQUEST = {
    *CORE, "db", "models", "auth", "outbound", "services", "woocommerce", "worker", "schemas",
}  # fmt: skip
# Packages that compute and do nothing else: no framework, no database, no request.
PURE_PACKAGES = {"dateutil", "email_validator", "marshmallow"}
# The settings check that SQLAlchemy can read DATABASE_URL; each app has a catalog and limits of its own.
EXCEPTIONS = {
    "app.config.fields": {"sqlalchemy"}, "app.config.urls": {"sqlalchemy"},
    "app.catalog": {"flask"}, "app.config.limits": {"flask"},
}  # fmt: skip


def part_of(module):
    """Return the part of a module: ``schemas`` of ``app.schemas.fields.output``, ``wsgi`` of ``wsgi``."""
    return module.split(".")[1] if module.startswith("app.") else module


def imports_of(path, *, anywhere=True):
    """Every dotted name that a file imports: a module, or a name in one."""
    tree = ast.parse(path.read_text())
    names = set()
    for node in ast.walk(tree) if anywhere else tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports by a relative name"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def modules_of(names):
    """The modules of ours among imported names."""
    ours = set()
    for name in names:
        holder = name.rpartition(".")[0]
        ours |= {name} & FILES.keys() or {holder} & FILES.keys()
    return ours


@pytest.mark.parametrize("module", FILES)
def test_module_imports_only_its_layer_and_lower_ones(module):
    part = part_of(module)
    used = {part_of(other) for other in modules_of(imports_of(FILES[module]))}
    assert sorted(used - MAY_IMPORT[part] - {part}) == []


@pytest.mark.parametrize("module", [name for name in FILES if part_of(name) in CORE])
def test_pure_module_imports_standard_library_and_pure_packages_only(module):
    packages = {name.split(".")[0] for name in imports_of(FILES[module])}
    extra = EXCEPTIONS.get(module, set())
    assert sorted(packages - sys.stdlib_module_names - PURE_PACKAGES - extra - {"app"}) == []


def test_blueprints_never_import_each_other():
    family = {name for name in FILES if name.startswith("app.blueprints.")}
    found = {name: modules_of(imports_of(FILES[name])) & family for name in family}
    assert found == {name: set() for name in family}


@pytest.mark.parametrize("module", [name for name in FILES if part_of(name) in BELOW_THE_REQUEST])
def test_nothing_below_the_api_reads_the_request(module):
    forbidden = {"flask.request", "flask.g", "flask.session", "flask.globals", "flask"}
    # ``import flask`` would be a way around the names.
    assert imports_of(FILES[module]) & forbidden == set()


@pytest.mark.parametrize("module", [name for name in FILES if part_of(name) == "schemas"])
def test_schema_never_has_a_session(module):
    names = imports_of(FILES[module])
    assert {name for name in names if name.startswith(("sqlalchemy.orm", "flask_sqlalchemy"))} == (
        set()
    )
    assert {name for name in names if name.startswith("flask")} == set()


def service_of(module):
    """Return the folder of a service: ``orders`` of ``app.services.orders.trash``."""
    return module.split(".")[2] if module.startswith("app.services.") else None


@pytest.mark.parametrize("module", [name for name in FILES if service_of(name)])
def test_service_imports_only_services_to_its_left(module):
    used = {service_of(other) for other in modules_of(imports_of(FILES[module]))} - {None}
    allowed = SERVICES[: SERVICES.index(service_of(module)) + 1]
    assert sorted(used - set(allowed)) == []


@pytest.mark.parametrize("package", ["db", "schemas", "services", "api", "woocommerce", "cli"])
def test_folders_of_a_package_have_no_circle(package):
    """A module beside the folders counts as a folder of its own."""

    def room(module):
        return ".".join(module.split(".")[2:3])

    graph = {}
    for module, path in FILES.items():
        if part_of(module) == package and room(module):
            others = modules_of(imports_of(path))
            rooms = {room(other) for other in others if part_of(other) == package} - {""}
            graph.setdefault(room(module), set()).update(rooms - {room(module)})
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"circle: {' -> '.join(error.args[1])}")


def test_no_import_cycle_at_module_level():
    graph = {
        module: modules_of(imports_of(path, anywhere=False)) - {module}
        for module, path in FILES.items()
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")
    commands = {module for module, _, _ in COMMANDS.values()}  # which are imported by name
    plugins = {plugin.module for plugin in BUILTIN}  # the same
    assert order[-1] in {"wsgi", "app.plugin_api", *commands, *plugins}


LONGEST_FUNCTION = 50
"""Lines of a function from ``def`` to its end, so that it fits on a screen."""


@pytest.mark.parametrize("module", FILES)
def test_functions_fit_on_a_screen(module):
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    nodes = ast.walk(ast.parse(FILES[module].read_text()))
    functions = [node for node in nodes if isinstance(node, kinds)]
    lengths = {each.name: each.end_lineno - each.lineno + 1 for each in functions}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}


def test_every_part_has_a_layer():
    assert {part_of(module) for module in FILES} - MAY_IMPORT.keys() == set()
