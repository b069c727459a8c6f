"""Who may import whom: the layer table of the architecture, read from the imports themselves."""

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in [*sorted((ROOT / "app").rglob("*.py")), ROOT / "wsgi.py"]
}

# A part is a module of app/, or a package of it. What a row may import: its own part, and these.
LAYERS = [
    {"errors", "sanitize", "dates", "config", "oauth", "carts", "discounts", "evaluation"},
    {
        "changes",
        "columns",
        "db",
        "functions",
        "models",
        "reading",
        "ready",
        "search",
        "sqlite",
        "timeouts",
    },
    {
        "attempts",
        "auth",
        "credentials",
        "encryption",
        "matching",
        "plugins",
        "pagination",
        "passwords",
        "records",
    },
    {"services", "bulk"},
    {"schemas", "serializers", "paths"},
    {
        "dialect",
        "answers",
        "arguments",
        "callers",
        "failures",
        "order_extensions",
        "openapi",
        "request_headers",
        "headers",
        "api",
        "conditional",
        "idempotency",
        "blueprints",
    },
    {"app", "cli", "wsgi"},
]
PURE, DATA, WHO, RULES, SHAPES, EDGE, TOP = LAYERS
BELOW_THE_EDGE = PURE | DATA | WHO | RULES | SHAPES
MAY_IMPORT = {
    **{part: set() for part in PURE},
    "dates": {"sanitize"},
    "discounts": {"carts"},
    "evaluation": {"carts", "discounts"},
    "changes": {"sqlite"},
    "sqlite": set(),
    "timeouts": PURE,
    "ready": set(),
    "reading": {"ready", "timeouts"},
    "db": PURE | {"changes", "reading", "sqlite", "timeouts"},
    "search": PURE,
    "columns": PURE,
    "functions": PURE | {"columns"},
    "models": PURE | {"db", "columns", "search"},
    **dict.fromkeys(WHO, PURE | DATA | WHO),
    **dict.fromkeys(RULES, PURE | DATA | WHO | RULES),
    **dict.fromkeys(SHAPES, PURE | SHAPES),
    "logs": PURE,
    "metrics": PURE | {"db", "logs", "reading", "timeouts"},
    "dialect": BELOW_THE_EDGE,
    "answers": BELOW_THE_EDGE | {"dialect"},
    "order_extensions": BELOW_THE_EDGE,
    "openapi": BELOW_THE_EDGE | {"dialect"},
    "request_headers": {"openapi"},
    **dict.fromkeys(("arguments", "callers"), BELOW_THE_EDGE | {"dialect"}),
    "failures": BELOW_THE_EDGE | {"dialect", "answers", "callers"},
    "api": BELOW_THE_EDGE
    | {"dialect", "answers", "arguments", "callers", "failures", "openapi", "request_headers"},
    "headers": BELOW_THE_EDGE | {"openapi"},
    **dict.fromkeys(("conditional", "idempotency"), BELOW_THE_EDGE | {"answers", "callers", "api"}),
    "blueprints": BELOW_THE_EDGE | EDGE,
    **{part: set().union(*LAYERS) | {"logs", "metrics"} for part in TOP},
}
# Packages that compute and do nothing else: no framework, no database, no request.
PURE_PACKAGES = {"dateutil", "email_validator", "marshmallow"}
# The settings check that DATABASE_URL is a URL that SQLAlchemy reads.
MAY_PARSE_URLS = {"app.config": {"sqlalchemy"}}


def part_of(module):
    """``app.schemas.fields`` -> ``schemas``; ``app`` itself and ``wsgi`` are parts, too."""
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


@pytest.mark.parametrize("module", [name for name in FILES if part_of(name) in PURE])
def test_pure_module_imports_standard_library_and_pure_packages_only(module):
    packages = {name.split(".")[0] for name in imports_of(FILES[module])}
    extra = MAY_PARSE_URLS.get(module, set())
    assert sorted(packages - sys.stdlib_module_names - PURE_PACKAGES - extra - {"app"}) == []


def test_blueprints_never_import_each_other():
    family = {name for name in FILES if name.startswith("app.blueprints.")}
    found = {name: modules_of(imports_of(FILES[name])) & family for name in family}
    assert found == {name: set() for name in family}


@pytest.mark.parametrize(
    "module", [name for name in FILES if part_of(name) in PURE | DATA | WHO | RULES | SHAPES]
)
def test_below_the_blueprints_nothing_reads_the_request(module):
    forbidden = {"flask.request", "flask.g", "flask.session", "flask.globals", "flask"}
    # ``import flask`` would be a way around the names.
    assert imports_of(FILES[module]) & forbidden == set()


@pytest.mark.parametrize("module", [name for name in FILES if part_of(name) in SHAPES])
def test_schema_never_has_a_session(module):
    names = imports_of(FILES[module])
    assert {name for name in names if name.startswith(("sqlalchemy.orm", "flask_sqlalchemy"))} == (
        set()
    )
    assert {name for name in names if name.startswith("flask")} == set()


def test_no_import_cycle_at_module_level():
    graph = {
        module: modules_of(imports_of(path, anywhere=False)) - {module}
        for module, path in FILES.items()
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")
    assert order[-1] == "wsgi"


def test_every_part_stands_in_the_table():
    assert {part_of(module) for module in FILES} - MAY_IMPORT.keys() == set()
