"""Short runs on each database (docs/reliability.md), and the planted defects."""

import ast
import operator
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from qa.histories import (
    campaign_plants,
    narrow_plants,
    person_plants,
    planting,
    plants,
    report,
    runs,
)
from qa.histories.faults import KINDS
from qa.histories.planted import DATABASES, find, table
from qa.histories.plants import PLANTS
from qa.histories.system import SHOPS, missing
from tests.serving import ROOT

SECONDS = 10
PLANTED_SECONDS = 180  # a run ends at the first violation, and a busy machine sends few requests
QUICK = (
    "no-lock", "release-frees-two", "idempotency-survives-rollback", "idempotency-forgets",
    "email-case", "lost-event", "statistics-not-updated", "limit-off-by-one", "refund-exceeds",
    "refunded-releases", "keys-of-any-body", "update-without-time", "metadata-dropped",
    "read-only-writes", "second-key-ignored", "results-reordered", "fees-left-out", "amount-kept",
    "erasure-forgets-uses",
)  # fmt: skip
"""Plants that a few seconds of traffic without faults show, also on a busy machine.

Of those that break the same promise in the words of the same checker, it is the one that needs the
least traffic. ``python -m qa.histories.planted`` runs all. ``test_altered_history_is_rejected`` has
what they do.
"""


def run(database, seed, seconds, **options):
    """Run a run; return its result and what was found, as text."""
    result = runs.run(database, seed, seconds, **options)
    return result, [report.text(violation, seed) for violation in result.violations]


@pytest.mark.slow
@pytest.mark.parametrize(
    "database",
    [
        pytest.param(
            name, marks=pytest.mark.skipif(bool(missing(name)), reason=missing(name) or "is there")
        )
        for name in SHOPS
    ],
)
def test_promises_hold_during_faults(database):
    """On the cluster, a standby becomes the primary during the traffic."""
    # A cluster takes long to repair, so its run ends after these seconds, with fewer faults.
    needs = "nothing" if database == "cluster" else "faults"
    result, found = run(database, 1, SECONDS, needs=needs)
    assert found == []
    # How often depends on the machine: ``make histories`` reports what was not tested.
    happened = {kind for kind, number in result.figures["faults"].items() if number}
    assert happened >= {*SHOPS[database].targets, *(KINDS if needs == "faults" else ())}
    assert result.figures["responses compared"] == result.figures["operations"]


@pytest.mark.slow
def test_limit_per_customer_holds_while_addresses_change():
    """Guests become accounts, accounts take the addresses of guests, and accounts are deleted."""
    result, found = run("postgresql", 1, SECONDS, faults=False, accounts=True, needs="nothing")
    assert found == []
    assert result.figures["responses compared"] == result.figures["operations"]


@pytest.mark.slow
@pytest.mark.parametrize("plant", QUICK)
def test_planted_defect_is_found(plant):
    """An internal error of the planted code is not the defect."""
    cell, told = find(DATABASES.get(plant, "sqlite"), plant, 1, PLANTED_SECONDS)
    assert "not" not in cell, told


def test_quick_plants_exist():
    assert set(QUICK) < set(PLANTS)
    assert set(DATABASES) < set(PLANTS)
    assert {DATABASES.get(name) for name in QUICK} <= {None, "postgresql"}


def test_runner_of_plants_prints_what_was_not_found():
    rows = {"no-lock": ["4", "not in 60"], "stale-read": ["12", "skipped"]}
    assert table(rows, range(8, 10)) == [
        "                   8         9",
        "no-lock            4 not in 60",
        "stale-read        12   skipped",
        "4 runs, 1 did not find the defect",
    ]


def test_plants_use_names_that_exist():
    """A plant that replaces or calls a name of an earlier version has no effect, or fails."""
    used = {
        (module, node)
        for module in (plants, narrow_plants, campaign_plants, person_plants, planting)
        for node in attributes(ast.parse(Path(module.__file__).read_text()), frozenset())
        if isinstance(getattr(module, ast.unparse(node).split(".")[0], None), ModuleType | type)
    }
    assert len(used) >= 100
    missing = []
    for module, node in used:
        try:
            operator.attrgetter(ast.unparse(node))(module)
        except RuntimeError:  # an object of Flask, which a request has
            continue
        except AttributeError:
            missing.append(f"{Path(module.__file__).name}:{node.lineno} {ast.unparse(node)}")
    assert missing == []


def attributes(node, own):
    """Yield the dotted names in a tree, without those of parameters of the functions around them."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        own = own | {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    if isinstance(node, ast.Attribute):
        first = node
        while isinstance(first, ast.Attribute):
            first = first.value
        if isinstance(first, ast.Name):
            if first.id not in own:
                yield node
            return
    for each in ast.iter_child_nodes(node):
        yield from attributes(each, own)


@pytest.mark.slow
def test_each_plant_can_be_planted(tmp_path):
    """Each is planted in a process of its own, because it stays.

    What replaces a function takes the same arguments. Otherwise, a run finds its TypeError.
    """
    program = """
import gc, inspect, os, sys, traceback, types
from app import create_app
from qa.histories.plants import PLANTS

folder = sys.argv[1]
app = create_app({"DATABASE_URL": f"sqlite:///{folder}/shop.db", "SECRET_KEY": "k" * 40,
                  "INSTANCE_PATH": folder})
def functions():
    return {
        (module.__name__, name): each
        for module in list(sys.modules.values()) if module.__name__.startswith("app.")
        for name, each in vars(module).items() if isinstance(each, types.FunctionType)
    }
before = functions()
gc.freeze()  # a collection in a fork would copy what it shares
for name, plant in PLANTS.items():
    if not os.fork():
        try:
            plant(app)
            for place, now in functions().items():
                if place in before and now.__module__.startswith("qa."):
                    every = inspect.signature(before[place]).parameters.values()
                    given = [each for each in every if each.default is each.empty]
                    inspect.signature(now).bind(
                        *(0 for each in given if each.kind is each.POSITIONAL_OR_KEYWORD),
                        **{each.name: 0 for each in given if each.kind is each.KEYWORD_ONLY},
                    )
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.wait()[1]:
        print(name)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [], done.stderr
