"""List the breaking and the additive changes of openapi.json.

    python tools/openapi_diff.py [BASE] [DOCUMENT]

BASE is a file or a git revision (default: HEAD). DOCUMENT is a file (default: openapi.json). The
exit status is 1 if there is a breaking change and the major version has not changed.

A change is breaking if existing clients can notice it: a valid request is rejected or has another
effect, a response loses a value or has a new value in an existing property, or code that uses a
generated client no longer compiles. Therefore the set of valid requests may only grow, and the set
of possible responses may only shrink. New properties, error codes and error statuses are additive,
because clients ignore or expect them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

JSON = dict[str, Any]
Values = set[str] | None  # None: any value

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
LOWER_BOUNDS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
UPPER_BOUNDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
UNDERSTOOD = {*LOWER_BOUNDS, *UPPER_BOUNDS, "pattern", "type", "enum", "const", "default"}
UNDERSTOOD |= {"properties", "required", "items", "additionalProperties", "anyOf", "oneOf"}
ANNOTATIONS = {
    "title",
    "description",
    "example",
    "examples",
    "externalDocs",
    "deprecated",
    "$comment",
}


class Change(NamedTuple):
    """A difference between two documents."""

    breaking: bool
    where: str
    what: str

    def __str__(self) -> str:
        """Return the output line."""
        return f"{'breaking' if self.breaking else 'additive'}  {self.where}: {self.what}"


def compare(old: JSON, new: JSON) -> list[Change]:
    """Return the changes from one document to another. Breaking changes come first."""
    return Comparison(old, new).changes()


class Comparison:
    """The comparison of two documents."""

    def __init__(self, old: JSON, new: JSON) -> None:
        self.old = old
        self.new = new
        self.found: dict[Change, None] = {}  # an ordered set
        self.compared: set[tuple[str | None, str | None, bool]] = set()

    def changes(self) -> list[Change]:
        """Compare the documents and return the changes."""
        old, new = _operations(self.old), _operations(self.new)
        self.keys("API", "operation", old, new)
        for name in old.keys() & new.keys():
            self.operation(name, old[name], new[name])
        # Generated clients have a type with the name of each schema.
        self.keys("API", "schema", _schemas(self.old), _schemas(self.new))
        return sorted(self.found, key=lambda change: (not change.breaking, *change[1:]))

    def note(self, breaking: bool, where: str, what: str) -> None:
        """Record a change, without duplicates."""
        self.found[Change(breaking, where, what)] = None

    def keys(self, where: str, kind: str, old: JSON, new: JSON) -> None:
        """Record removed keys as breaking and new keys as additive."""
        for name in old.keys() - new.keys():
            self.note(True, where, f"{kind} {name} was removed")
        for name in new.keys() - old.keys():
            self.note(False, where, f"{kind} {name} was added")

    def operation(self, where: str, old: JSON, new: JSON) -> None:
        """Compare two versions of an operation."""
        for key, default in (("operationId", None), ("tags", [])):  # names in a generated client
            if old.get(key, default) != new.get(key, default):
                self.note(True, where, f"{key} {old.get(key)} became {new.get(key)}")
        before = old.get("security", self.old.get("security", []))
        after = new.get("security", self.new.get("security", []))
        if before != after:
            self.note(bool(after), where, f"security {before} became {after}")
        self.parameters(where, _parameters(self.old, old), _parameters(self.new, new))
        self.body(where, old.get("requestBody"), new.get("requestBody"))
        self.responses(where, old["responses"], new["responses"])

    def parameters(self, where: str, old: JSON, new: JSON) -> None:
        """Compare parameters. A new required parameter is breaking."""
        for name in old.keys() - new.keys():
            self.note(True, where, f"parameter {name} was removed")
        for name in new.keys() - old.keys():
            required = new[name].get("required", False)
            self.note(required, where, f"{'required ' * required}parameter {name} was added")
        for name in old.keys() & new.keys():
            self.required(where, f"parameter {name}", old[name], new[name])
            inner = f"{where} {name}"
            self.schema(inner, old[name].get("schema", {}), new[name].get("schema", {}), True)

    def body(self, where: str, old: JSON | None, new: JSON | None) -> None:
        """Compare request bodies."""
        if not old or not new:
            if old:
                self.note(True, where, "the body was removed")
            if new:
                self.note(new.get("required", False), where, "the body was added")
            return
        self.required(where, "the body", old, new)
        self.content(where, old["content"], new["content"], True)

    def required(self, where: str, what: str, old: JSON, new: JSON) -> None:
        """Compare whether a part of a request is required."""
        before, after = old.get("required", False), new.get("required", False)
        if before != after:
            self.note(after, where, f"{what} became {'required' if after else 'optional'}")

    def responses(self, where: str, old: JSON, new: JSON) -> None:
        """Compare responses. A new success status is breaking, a new error status is not."""
        for status in old.keys() - new.keys():
            self.note(status < "4", where, f"status {status} was removed")
        for status in new.keys() - old.keys():
            self.note(status < "4", where, f"status {status} was added")
        for status in old.keys() & new.keys():
            inner = f"{where} {status}"
            before, after = old[status], new[status]
            self.keys(inner, "header", before.get("headers", {}), after.get("headers", {}))
            self.content(inner, before.get("content", {}), after.get("content", {}), False)
            if status >= "4":
                self.keys(inner, "error code", _examples(before), _examples(after))

    def content(self, where: str, old: JSON, new: JSON, request: bool) -> None:
        """Compare the media types of a body."""
        self.keys(where, "media type", old, new)
        for kind in old.keys() & new.keys():
            self.schema(where, old[kind].get("schema", {}), new[kind].get("schema", {}), request)

    def schema(self, where: str, old: JSON, new: JSON, request: bool) -> None:
        """Compare the values that a schema allows in a request or in a response."""
        old_name, old = _resolve(self.old, old)
        new_name, new = _resolve(self.new, new)
        if old_name or new_name:
            where = f"{new_name or old_name} in a {'request' if request else 'response'}"
            if (old_name, new_name, request) in self.compared:
                return
            self.compared.add((old_name, new_name, request))
        before, after = _alternatives(old), _alternatives(new)
        if len(before) == len(after) == 1:
            (only_before,), (only_after,) = before.values(), after.values()
            self.plain(where, only_before, only_after, request)
            return
        for name in before.keys() - after.keys():
            self.note(request, where, f"alternative {name} was removed")
        for name in after.keys() - before.keys():
            self.note(not request, where, f"alternative {name} was added")
        for name in before.keys() & after.keys():
            self.schema(where, before[name], after[name], request)

    def plain(self, where: str, old: JSON, new: JSON, request: bool) -> None:
        """Compare two schemas without alternatives."""
        if "$ref" in old or "$ref" in new:
            self.schema(where, old, new, request)
            return
        self.values(where, "type", _types(old), _types(new), request)
        self.values(where, "value", _values(old), _values(new), request)
        self.limits(where, old, new, request)
        self.properties(where, old, new, request)
        for key in {"items", "additionalProperties"} & (old.keys() | new.keys()):
            before, after = old.get(key, {}), new.get(key, {})
            if isinstance(before, dict) and isinstance(after, dict):
                self.schema(f"{where}[]", before, after, request)
            elif before != after:
                self.note(request != (after is not False), where, f"{key} became {after}")

    def values(self, where: str, kind: str, old: Values, new: Values, request: bool) -> None:
        """Compare sets of values. None includes every value."""
        if old is None or new is None:
            if old != new:
                self.note((old is None) == request, where, f"the list of {kind}s {_shown(new)}")
            return
        for member in old - new:
            self.note(request, where, f"{kind} {member} was removed")
        for member in new - old:
            self.note(not request, where, f"{kind} {member} was added")

    def limits(self, where: str, old: JSON, new: JSON, request: bool) -> None:
        """Compare limits, patterns, defaults and unknown keywords."""
        for key in (*LOWER_BOUNDS, *UPPER_BOUNDS, "pattern"):
            before, after = old.get(key), new.get(key)
            if before == after:
                continue
            narrower = before is None or (
                after is not None
                and (key == "pattern" or (after > before) == (key in LOWER_BOUNDS))
            )
            # Two patterns cannot be compared.
            unknown = key == "pattern" and None not in (before, after)
            self.note(unknown or narrower == request, where, f"{key} {before} became {after}")
        # Generated clients have types for formats. The meaning of other keywords is unknown.
        for key in (old.keys() | new.keys()) - UNDERSTOOD - ANNOTATIONS:
            if old.get(key) != new.get(key):
                self.note(True, where, f"{key} {old.get(key)} became {new.get(key)}")
        if "default" in old and "default" in new and old["default"] != new["default"]:
            self.note(request, where, f"default {old['default']} became {new['default']}")

    def properties(self, where: str, old: JSON, new: JSON, request: bool) -> None:
        """Compare the properties of objects."""
        before, after = old.get("properties", {}), new.get("properties", {})
        required = set(old.get("required", [])), set(new.get("required", []))
        for name in before.keys() - after.keys():
            self.note(True, where, f"property {name} was removed")
        for name in after.keys() - before.keys():
            is_required = request and name in required[1]
            self.note(is_required, where, f"{'required ' * is_required}property {name} was added")
        for name in before.keys() & after.keys():
            if (name in required[0]) != (name in required[1]):
                is_required = name in required[1]
                state = "required" if is_required else "optional"
                self.note(is_required == request, where, f"property {name} became {state}")
            self.schema(f"{where}, {name}", before[name], after[name], request)


def _operations(document: JSON) -> JSON:
    return {
        f"{method.upper()} {path}": operation | {"shared": item.get("parameters", [])}
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    }


def _schemas(document: JSON) -> JSON:
    schemas: JSON = document.get("components", {}).get("schemas", {})
    return schemas


def _parameters(document: JSON, operation: JSON) -> JSON:
    every = [*operation["shared"], *operation.get("parameters", [])]
    every = [_resolve(document, parameter)[1] for parameter in every]
    return {f"{parameter['in']} {parameter['name']}": parameter for parameter in every}


def _examples(response: JSON) -> JSON:
    examples: JSON = response.get("content", {}).get("application/json", {}).get("examples", {})
    return examples


def _resolve(document: JSON, found: JSON) -> tuple[str | None, JSON]:
    """Resolve a reference. Return its name, or None, and the object."""
    name = None
    while "$ref" in found:
        *_, kind, name = found["$ref"].split("/")
        found = document["components"][kind][name]
    return name, found


def _alternatives(schema: JSON) -> JSON:
    """Return the alternatives of a schema by name."""
    several = schema.get("anyOf") or schema.get("oneOf") or [schema]
    named = {}
    for each in several:
        name = _name(each)
        while name in named:
            name += ", too"
        named[name] = each
    return named


def _name(schema: JSON) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    return " or ".join(sorted(_types(schema) or ["anything"]))


def _types(schema: JSON) -> Values:
    types = schema.get("type")
    if types is None:
        return None
    types = {types} if isinstance(types, str) else set(types)
    return types | {"integer"} if "number" in types else types


def _values(schema: JSON) -> Values:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return None if values is None else {json.dumps(value) for value in values}


def _shown(values: Values) -> str:
    return "was removed" if values is None else f"is now {', '.join(sorted(values))}"


def _read(base: str) -> JSON:
    if Path(base).is_file():
        text = Path(base).read_bytes()
    else:
        show = ["git", "show", "--end-of-options", f"{base}:openapi.json"]
        done = subprocess.run(show, check=False, capture_output=True)  # noqa: S603  # git, no shell
        if done.returncode:
            sys.exit(f"{base} is neither a file nor a git revision with openapi.json.")
        text = done.stdout
    try:
        document: JSON = json.loads(text)
    except ValueError as error:
        sys.exit(f"{base} is not a JSON document: {error}.")
    return document


def main(base: str = "HEAD", document: str = "openapi.json") -> int:
    """Print the changes and return the exit status."""
    old, new = _read(base), _read(document)
    changes = compare(old, new)
    breaking = sum(change.breaking for change in changes)
    lines = [*map(str, changes), f"{breaking} breaking, {len(changes) - breaking} additive"]
    before, after = old["info"]["version"], new["info"]["version"]
    same_major = before.split(".")[0] == after.split(".")[0]
    if breaking and same_major:
        lines.append(f"A breaking change needs a new major version: {before} became {after}.")
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(breaking) and same_major)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
