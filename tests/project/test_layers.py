"""The import layers of the architecture, checked from the imports of each module."""

import ast
import re
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from app.blueprints import BUILTIN
from app.cli import COMMANDS

ROOT = Path(__file__).parents[2]
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in [*sorted((ROOT / "app").rglob("*.py")), ROOT / "wsgi.py"]
}

# A part is a package of app/ or app/plugins/, or a module directly in app/. A part imports parts of the
# layers below it.
CORE = {
    "catalog", "config", "conversions", "errors", "pricing",
}  # fmt: skip
LAYERS = ["db", "models", "auth", "outbound", "services", "api", "blueprints"]
PLUGINS = {"plugins", "admin", "woocommerce", "woocommerce.importer", "woocommerce.rest"}
TOP = {"app", "cli", "main", "plugin_api", "wsgi"}
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
MAY_IMPORT["blueprints"] |= {"import_export"}
for part in ("api", "blueprints"):
    MAY_IMPORT[part] |= {"schemas"}
# Plugins are beside the blueprints, and import neither these nor each other.
MAY_IMPORT |= dict.fromkeys(PLUGINS, CORE | {*LAYERS[:-1], "schemas", "import_export", "cli"})
MAY_IMPORT["woocommerce"] |= {"woocommerce.importer", "woocommerce.rest"}
MAY_IMPORT["woocommerce.rest"] |= {"woocommerce"}
MAY_IMPORT["woocommerce.importer"] = CORE | {*LAYERS[:5], "woocommerce"}
# A folder of services imports only the folders to its left.
(_SERVICES,) = re.findall(r"^common  <  .*$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
SERVICES = _SERVICES.split("  <  ")
BELOW_THE_REQUEST = {
    *CORE, "db", "models", "auth", "outbound", "services", "worker", "schemas",
    "woocommerce.importer",
}  # fmt: skip
# Packages that compute and do nothing else: no framework, no database, no request.
PURE_PACKAGES = {"dateutil", "email_validator", "idna", "marshmallow"}
# The settings check that SQLAlchemy can read DATABASE_URL; each app has a catalog and limits of its own.
EXCEPTIONS = {
    "app.config.fields": {"sqlalchemy"}, "app.config.urls": {"sqlalchemy"},
    "app.catalog": {"flask"}, "app.config.current": {"flask"},
}  # fmt: skip
NO_CIRCLES = ["db", "schemas", "services", "api", "plugins.woocommerce.importer", "cli"]
"""Packages whose folders do not import each other in a circle."""

LONGEST_FUNCTION = 50
"""Lines of a function from ``def`` to its end, so that it fits on a screen."""


def part_of(module):
    """Return the part of a module: ``schemas`` of ``app.schemas.base``, ``wsgi`` of ``wsgi``."""
    first, *others = module.removeprefix("app.").removeprefix("plugins.").split(".")
    folder = ".".join([first, *others[:1]])
    return folder if folder in MAY_IMPORT else first


def service_of(module):
    """Return the folder of a service: ``orders`` of ``app.services.orders.trash``."""
    return module.split(".")[2] if module.startswith("app.services.") else None


@cache
def parsed(module):
    return ast.parse(FILES[module].read_text())


@cache
def imports_of(module, *, anywhere=True):
    """Every dotted name that a module imports: a module, or a name in one."""
    names = set()
    for node in ast.walk(parsed(module)) if anywhere else parsed(module).body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports by a relative name"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


@cache
def modules_of(names):
    """The modules of ours among imported names."""
    ours = set()
    for name in names:
        holder = name.rpartition(".")[0]
        ours |= {name} & FILES.keys() or {holder} & FILES.keys()
    return ours


def forbidden_modules(module):
    """Return the modules of the app that a module imports and must not."""
    part, service = part_of(module), service_of(module)
    allowed = MAY_IMPORT.get(part, set()) | {part}  # a part without a layer imports itself only
    left = SERVICES[: SERVICES.index(service) + 1] if service else []
    for other in modules_of(imports_of(module)):
        is_blueprint = module.startswith("app.blueprints.") and other.startswith("app.blueprints.")
        is_right = service and service_of(other) and service_of(other) not in left
        if part_of(other) not in allowed or is_blueprint or is_right:
            yield other


def forbidden_packages(module):
    """Return what a module imports of other packages and must not."""
    part, names = part_of(module), imports_of(module)
    if part in BELOW_THE_REQUEST:
        # ``import flask`` would be a way around the names.
        yield from names & {"flask.request", "flask.g", "flask.session", "flask.globals", "flask"}
    if part == "schemas":
        yield from (
            name
            for name in names
            if name.startswith(("sqlalchemy.orm", "flask_sqlalchemy", "flask"))
        )
    if part in CORE:
        packages = {name.split(".")[0] for name in names} - EXCEPTIONS.get(module, set())
        yield from packages - sys.stdlib_module_names - PURE_PACKAGES - {"app"}


def folders_of(package):
    """Return which folders of a package import which. A module beside them counts as a folder."""

    prefix = f"app.{package}."

    def folders(modules):
        return {
            each.removeprefix(prefix).split(".")[0] for each in modules if each.startswith(prefix)
        }

    graph = {}
    for module in FILES:
        for folder in folders({module}):
            others = folders(modules_of(imports_of(module)))
            graph.setdefault(folder, set()).update(others - {folder})
    return graph


def circle_of(graph):
    """Return a circle of a graph as text, or None."""
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return " -> ".join(error.args[1])
    return None


def wrong(find):
    """Return what a function finds in each module, without the modules in which it finds nothing."""
    found = {module: sorted(find(module)) for module in FILES}
    return {module: names for module, names in found.items() if names}


def test_modules_import_only_lower_layers():
    assert {part_of(module) for module in FILES} - MAY_IMPORT.keys() == set()
    assert wrong(forbidden_modules) == {}


def test_modules_import_only_packages_of_their_layer():
    assert wrong(forbidden_packages) == {}


def test_imports_have_no_circle():
    modules = {
        module: modules_of(imports_of(module, anywhere=False)) - {module} for module in FILES
    }
    graphs = {"modules": modules} | {package: folders_of(package) for package in NO_CIRCLES}
    circles = {name: circle_of(graph) for name, graph in graphs.items()}
    assert {name: circle for name, circle in circles.items() if circle} == {}
    *_, last = TopologicalSorter(modules).static_order()
    commands = {module for module, _, _ in COMMANDS.values()}  # which are imported by name
    plugins = {plugin.module for plugin in BUILTIN}  # the same
    assert last in {"wsgi", "app.plugin_api", *commands, *plugins}


def test_functions_fit_on_a_screen():
    kinds = ast.FunctionDef | ast.AsyncFunctionDef

    def too_long(module):
        for node in ast.walk(parsed(module)):
            if isinstance(node, kinds) and node.end_lineno - node.lineno >= LONGEST_FUNCTION:
                yield f"{node.name}: {node.end_lineno - node.lineno + 1} lines"

    assert wrong(too_long) == {}


def test_no_module_reads_the_message_of_an_error():
    """Decisions need the code, the parameter and the details; the dialect makes the message last."""

    def reads(module):
        for node in ast.walk(parsed(module)):
            if isinstance(node, ast.Attribute) and node.attr == "message":
                yield f"line {node.lineno}"

    assert wrong(reads) == {}
