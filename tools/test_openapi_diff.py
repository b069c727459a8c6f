"""Test the classification of breaking and additive changes of openapi.json."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
from openapi_diff import compare

pytestmark = pytest.mark.slow  # a development tool, not part of the service

SCRIPT = Path(__file__).with_name("openapi_diff.py")
DOCUMENT = json.loads((SCRIPT.parent.parent / "openapi.json").read_text())


def small():
    """Return a small document with every kind of element."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Cups", "version": "1.0.0"},
        "paths": {
            "/cups": {
                "post": {
                    "operationId": "createCup",
                    "tags": ["cups"],
                    "security": [{"basicAuth": []}],
                    "parameters": [
                        {
                            "in": "query",
                            "name": "page",
                            "schema": {"type": "integer", "minimum": 1},
                        },
                        {
                            "in": "query",
                            "name": "order",
                            "schema": {"enum": ["asc", "desc"], "default": "asc"},
                        },
                    ],
                    "requestBody": {
                        "required": True,
                        "content": {
                            "application/json": {
                                "schema": {"$ref": "#/components/schemas/CupInput"}
                            }
                        },
                    },
                    "responses": {
                        "201": {
                            "headers": {"X-Total": {}},
                            "content": {
                                "application/json": {"schema": {"$ref": "#/components/schemas/Cup"}}
                            },
                        },
                        "400": {"content": {"application/json": {"examples": {"bad_cup": {}}}}},
                    },
                }
            }
        },
        "components": {
            "schemas": {
                "CupInput": {
                    "type": "object",
                    "properties": {
                        "name": {"type": ["string", "number"], "maxLength": 9},
                        "size": {"type": "integer"},
                    },
                    "required": ["name"],
                },
                "Cup": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "made_at": {"type": "string", "format": "date-time"},
                        "state": {"enum": ["whole", "broken"]},
                        "of": {"type": "array", "items": {"type": "integer"}},
                        "owner": {"anyOf": [{"$ref": "#/components/schemas/Owner"}]},
                    },
                    "required": ["name"],
                },
                "Owner": {
                    "type": "object",
                    "properties": {"cups": {"$ref": "#/components/schemas/Cup"}},
                },
                "Guest": {"type": "object"},
            }
        },
    }


GONE = object()
POST = "paths /cups post"
BODY = "components schemas CupInput"
CUP = "components schemas Cup"


@pytest.mark.parametrize(
    ("place", "value", "kind", "message"),
    [
        ("paths /cups", GONE, "breaking", "API: operation POST /cups was removed"),
        (
            "paths /mugs",
            {"get": {"responses": {}}},
            "additive",
            "API: operation GET /mugs was added",
        ),
        (f"{POST} operationId", "makeCup", "breaking", "operationId createCup became makeCup"),
        (f"{POST} tags", ["mugs"], "breaking", "tags ['cups'] became ['mugs']"),
        (f"{POST} security", [], "additive", "security [{'basicAuth': []}] became []"),
        (f"{POST} parameters 0", GONE, "breaking", "parameter query page was removed"),
        (
            f"{POST} parameters +",
            {"in": "query", "name": "q"},
            "additive",
            "parameter query q was added",
        ),
        (
            f"{POST} parameters +",
            {"in": "query", "name": "q", "required": True},
            "breaking",
            "required parameter query q was added",
        ),
        (
            f"{POST} parameters 0 required",
            True,
            "breaking",
            "parameter query page became required",
        ),
        (f"{POST} parameters 0 schema minimum", 0, "additive", "minimum 1 became 0"),
        (f"{POST} parameters 0 schema minimum", 2, "breaking", "minimum 1 became 2"),
        (f"{POST} parameters 0 schema minimum", GONE, "additive", "minimum 1 became None"),
        (f"{POST} parameters 1 schema enum 0", GONE, "breaking", 'value "asc" was removed'),
        (f"{POST} parameters 1 schema enum +", "none", "additive", 'value "none" was added'),
        (f"{POST} parameters 1 schema enum", GONE, "additive", "the list of values was removed"),
        (f"{POST} parameters 1 schema default", "desc", "breaking", "default asc became desc"),
        (f"{POST} requestBody", GONE, "breaking", "the body was removed"),
        (f"{POST} requestBody required", GONE, "additive", "the body became optional"),
        (f"{POST} responses 201 headers", {}, "breaking", "header X-Total was removed"),
        (f"{POST} responses 202", {}, "breaking", "status 202 was added"),
        (f"{POST} responses 404", {}, "additive", "status 404 was added"),
        (
            f"{POST} responses 400 content application/json examples",
            {"bad_cup": {}, "no_cup": {}},
            "additive",
            "error code no_cup was added",
        ),
        (
            f"{POST} responses 400 content application/json examples",
            {},
            "breaking",
            "error code bad_cup was removed",
        ),
        ("components schemas Guest", GONE, "breaking", "schema Guest was removed"),
        ("components schemas Host", {}, "additive", "schema Host was added"),
        (
            f"{BODY} properties size",
            GONE,
            "breaking",
            "CupInput in a request: property size was removed",
        ),
        (f"{BODY} properties colour", {}, "additive", "property colour was added"),
        (f"{BODY} required +", "size", "breaking", "property size became required"),
        (f"{BODY} required 0", GONE, "additive", "property name became optional"),
        (f"{BODY} properties name type 1", GONE, "breaking", "type number was removed"),
        (f"{BODY} properties name type +", "null", "additive", "type null was added"),
        (f"{BODY} properties size type", "number", "additive", "type number was added"),
        (f"{BODY} properties name maxLength", 5, "breaking", "maxLength 9 became 5"),
        (f"{BODY} properties name pattern", "^a", "breaking", "pattern None became ^a"),
        (f"{BODY} additionalProperties", False, "breaking", "additionalProperties became False"),
        (
            f"{CUP} properties name",
            GONE,
            "breaking",
            "Cup in a response: property name was removed",
        ),
        (f"{CUP} properties colour", {}, "additive", "property colour was added"),
        (f"{CUP} required 0", GONE, "breaking", "property name became optional"),
        (f"{CUP} required +", "state", "additive", "property state became required"),
        (f"{CUP} properties name type", ["string", "null"], "breaking", "type null was added"),
        (f"{CUP} properties name pattern", "^a", "additive", "pattern None became ^a"),
        (f"{CUP} properties name maxLength", 5, "additive", "maxLength None became 5"),
        (f"{CUP} properties made_at format", GONE, "breaking", "format date-time became None"),
        (f"{CUP} properties state enum +", "lost", "breaking", 'value "lost" was added'),
        (f"{CUP} properties state enum 0", GONE, "additive", 'value "whole" was removed'),
        (f"{CUP} properties of items type", "string", "breaking", "of[]: type string was added"),
        (f"{CUP} properties name not", {}, "breaking", "not None became {}"),
        (
            f"{CUP} properties owner anyOf +",
            {"$ref": "#/components/schemas/Guest"},
            "breaking",
            "alternative Guest was added",
        ),
        (
            "components schemas Owner properties cups",
            GONE,
            "breaking",
            "Owner in a response: property cups was removed",
        ),
    ],
)
def test_change_is_reported(place, value, kind, message):
    changed = small()
    change(changed, place, value)
    changes = [str(change) for change in compare(small(), changed)]
    assert any(message in line and line.startswith(kind) for line in changes), changes


def change(document, place, value):
    *way, last = place.split()
    for key in way:
        document = document[int(key) if isinstance(document, list) else key]
    if last == "+":
        document.append(value)
    elif value is GONE:
        del document[int(last) if isinstance(document, list) else last]
    else:
        document[last] = value


def test_annotations_are_ignored():
    described = small()
    for schema in described["components"]["schemas"].values():
        schema["description"] = "New text."
    described["paths"]["/cups"]["post"]["summary"] = "Make a cup."
    assert compare(small(), described) == []
    assert compare(DOCUMENT, copy.deepcopy(DOCUMENT)) == []


def run(folder, *args):
    done = subprocess.run(
        [sys.executable, SCRIPT, *args], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.splitlines()


def test_command_compares_with_a_file(tmp_path):
    changed = copy.deepcopy(DOCUMENT)
    del changed["components"]["schemas"]["Coupon"]["properties"]["amount"]
    (tmp_path / "base.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "openapi.json").write_text(json.dumps(changed))
    message = "breaking  Coupon in a response: property amount was removed"
    version = DOCUMENT["info"]["version"]
    assert run(tmp_path, "base.json") == (
        1,
        [
            message,
            "1 breaking, 0 additive",
            f"A breaking change needs a new major version: {version} became {version}.",
        ],
    )
    changed["info"]["version"] = "9.0.0"
    (tmp_path / "openapi.json").write_text(json.dumps(changed))
    assert run(tmp_path, "base.json") == (0, [message, "1 breaking, 0 additive"])
    assert run(tmp_path, "openapi.json") == (0, ["0 breaking, 0 additive"])


def test_command_compares_with_the_last_commit(tmp_path):
    def git(*args):
        who = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
        subprocess.run(["git", *who, *args], cwd=tmp_path, check=True)

    (tmp_path / "openapi.json").write_text(json.dumps(DOCUMENT))
    git("init", "--quiet")
    git("add", "openapi.json")
    git("commit", "--quiet", "--no-gpg-sign", "--message", "The document")
    assert run(tmp_path) == (0, ["0 breaking, 0 additive"])
    changed = copy.deepcopy(DOCUMENT)
    changed["paths"]["/new"] = {"get": {"responses": {}}}
    (tmp_path / "openapi.json").write_text(json.dumps(changed))
    assert run(tmp_path) == (
        0,
        ["additive  API: operation GET /new was added", "0 breaking, 1 additive"],
    )


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("v1.0.0", "v1.0.0 is neither a file nor a git revision with openapi.json."),
        ("--help", "--help is neither a file nor a git revision with openapi.json."),
        (
            "base.json",
            "base.json is not a JSON document: Expecting value: line 1 column 1 (char 0).",
        ),
    ],
)
def test_base_that_cannot_be_read_is_reported_in_one_line(tmp_path, base, message):
    (tmp_path / "base.json").write_text("")
    done = subprocess.run(
        [sys.executable, SCRIPT, base], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{message}\n")
