"""Long inputs of several kinds for each field of an OpenAPI document, and what they cost."""

import json
from time import process_time
from urllib.parse import quote

LENGTH = 16_384
"""The length of texts in characters."""

NUMBER = 4_096
"""The number of entries of an array, or of the names of an object."""

IN_ADDRESS, NAMES_IN_ADDRESS = 7_000, 1_000
"""The length and the number of parameters that fit into a request line of 8,190 bytes. Headers have
the same limit."""

SHARE = 8
"""How many times as long the long input is as the short one that it is compared with."""

NEGLIGIBLE = 0.02
"""CPU seconds of the long input below which the short one is not measured. A cost that grows with
the square is a quarter of a second or more."""

TEXTS = {
    "digits": lambda n: "1" * n + "x",
    "decimals": lambda n: "1" * (n // 2) + "." + "1" * (n // 2) + "x",
    "zeros": lambda n: "0" * n + "x",
    "blanks": lambda n: " " * (n // 2) + "x" + " " * (n // 2) + "x",
    "line breaks": lambda n: "x" + "\r\n\t" * (n // 3) + "x",
    "commas": lambda n: "," * (n // 2) + "1," * (n // 4) + "x",
    "points": lambda n: "a@" + "a." * (n // 2) + "x",
    "at signs": lambda n: "@" * n,
    "hyphens": lambda n: "-" * (n // 2) + "1-" * (n // 4) + "x",
    "slashes": lambda n: "http://" + "/\\" * (n // 2),
    "angle brackets": lambda n: "<" * (n // 3) + "<a" * (n // 6) + "<!--" * (n // 12) + ">" * 99,
    "square brackets": lambda n: "[" * (n // 2) + "[a]" * (n // 6) + "]",
    "braces": lambda n: "{(" * (n // 4) + "{{a}}" * (n // 10),
    "quotes": lambda n: '"' + "\\\"'" * (n // 3),
    "entities": lambda n: "&#" * (n // 4) + "&#0" * (n // 6) + "&" * (n // 4),
    "nested entities": lambda n: "&" + "amp;" * (n // 4) + "lt;",
    "letters": lambda n: "a" * n + "!",
    "words": lambda n: "ab " * (n // 3) + "!",
    "marks": lambda n: "a" + "\u0301\u0323" * (n // 2),
    "capitals": lambda n: "\u0130\u1e9e" * (n // 2),
}
"""Texts of about ``n`` characters, which end so that a pattern does not match the whole text."""


def seconds(prepare, length):
    """The CPU time of this process for what ``prepare(length)`` returns."""
    run = prepare(length)
    start = process_time()
    run()
    return process_time() - start


def grows_too_fast(prepare, length):
    """Whether the cost of ``prepare(length)()`` grows with a higher power than the length.

    A cost that is negligible is measured once. Of another one, the short input is measured three times,
    and the long one again only if it seems to be too expensive, so that a busy machine does not matter.
    The limit is far from both: in proportion to the length, a cost grows by the factor 8, with the
    square of the length by 64.
    """
    long = seconds(prepare, length)
    if long < NEGLIGIBLE:
        return False
    short = min(seconds(prepare, length // SHARE) for _ in range(3))
    limit = max(NEGLIGIBLE, 2.5 * SHARE * short)
    return long > limit and all(seconds(prepare, length) > limit for _ in range(2))


class Document:
    """An OpenAPI document, with the fields of its operations."""

    def __init__(self, document):
        self.document = document

    def resolved(self, schema):
        """A schema without references. Of several possible ones, all properties."""
        while "$ref" in schema:
            found = self.document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = {**found, **{name: each for name, each in schema.items() if name != "$ref"}}
        parts = [self.resolved(each) for way in ("allOf", "oneOf", "anyOf")
                 for each in schema.get(way, ())]  # fmt: skip
        for part in parts:
            inner = part.get("properties", {}) | schema.get("properties", {})
            schema = {**part, **schema, **({"properties": inner} if inner else {})}
        return schema

    def operations(self):
        """The method, the path and the operation of each."""
        for path, methods in self.document["paths"].items():
            shared = methods.get("parameters", [])
            for method, operation in methods.items():
                if method in {"get", "post", "put", "patch", "delete"}:
                    parameters = [*shared, *operation.get("parameters", ())]
                    yield method.upper(), path, {**operation, "parameters": parameters}

    def sample(self, schema, depth=0):
        """A value that the schema describes, with its required properties and its items."""
        schema = self.resolved(schema)
        if examples := schema.get("examples") or (schema.get("example") and [schema["example"]]):
            return json.loads(json.dumps(examples[0]))
        if "enum" in schema:
            return schema["enum"][0]
        kind = kind_of(schema)
        if kind == "object":
            inner, required = schema.get("properties", {}), schema.get("required", ())
            return {name: self.sample(inner[name], depth + 1) for name in required if name in inner}
        if kind == "array":
            return [self.sample(schema.get("items", {}), depth + 1)] if depth < 8 else []
        return {"integer": 1, "number": 1, "boolean": True}.get(kind, "a1")

    def fields(self, schema, place=()):
        """The place and the schema of the value itself and of each value within it.

        A place is a sequence of names, and of 0 for the first item of an array.
        """
        schema = self.resolved(schema)
        yield place, schema
        if len(place) > 8:
            return
        for name, each in schema.get("properties", {}).items():
            if not each.get("readOnly"):
                yield from self.fields(each, (*place, name))
        if "items" in schema:
            yield from self.fields(schema["items"], (*place, 0))


def kind_of(schema):
    """The type of a schema. Of several, an array, an object or a text comes first."""
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return next((each for each in ("array", "object", "string") if each in kinds), kinds[0])


HERE = "the place of a Raw"


class Raw(str):
    """JSON text in place of a value."""


def texts():
    """Functions of a length by their kind: long texts and numbers, and the length of each."""
    return {
        **{f"text of {name}": (make, LENGTH) for name, make in TEXTS.items()},
        "number of many digits": (lambda n: Raw(f"0.{'1' * n}"), LENGTH),
        "number with a large exponent": (lambda n: Raw(f"1e{n}"), LENGTH),
    }


def lists(schema, sample):
    """Functions of a length by their kind: long arrays and objects, and the length of each."""
    found = {}
    if kind_of(schema) == "array":
        item = sample[0] if sample else "a"
        found["entries"] = (lambda n: [numbered(item, at) for at in range(n)], NUMBER)
        found["equal entries"] = (lambda n: [item] * n, NUMBER)
        found["entries that are lists"] = (lambda n: [[]] * n, NUMBER)
        found["entries that are objects"] = (lambda n: [{}] * n, NUMBER)
    if kind_of(schema) in {"object", "array"}:
        found["columns"] = (lambda n: {f"column_{at}": at for at in range(n)}, NUMBER)
        found["columns without a value"] = (lambda n: {f"c{at}": None for at in range(n)}, NUMBER)
        found["numbered columns"] = (lambda n: {str(at): "x" for at in range(n)}, NUMBER)
        found["deep lists"] = (lambda n: Raw("[" * n + "]" * n), 256)
    return found


def numbered(item, at):
    """A copy of an item whose texts and numbers differ from those of the others."""
    if isinstance(item, dict):
        return {name: numbered(each, at) for name, each in item.items()}
    if isinstance(item, list):
        return [numbered(each, at) for each in item]
    if isinstance(item, bool) or item is None:
        return item
    return item + at if isinstance(item, int) else f"{item}{at}"


def written(document, schema, body, place, value):
    """JSON of a body with another value at a place. The text of a ``Raw`` is as it is."""
    if not isinstance(value, Raw):
        return json.dumps(replaced(document, schema, body, place, value))
    before = json.dumps(replaced(document, schema, body, place, HERE))
    return before.replace(json.dumps(HERE), value)


def replaced(document, schema, body, place, value):
    """A body with another value at a place. What is missing on the way is a sample."""
    if not place:
        return value
    schema = document.resolved(schema)
    first, *rest = place
    if isinstance(first, int):
        items = body if isinstance(body, list) and body else [document.sample(schema["items"])]
        return [replaced(document, schema["items"], items[0], rest, value), *items[1:]]
    inner = schema["properties"][first]
    own = body if isinstance(body, dict) else {}
    before = own.get(first, document.sample(inner) if rest else None)
    return {**own, first: replaced(document, inner, before, rest, value)}


def at_place(body, place):
    """The value at a place, or None."""
    for part in place:
        try:
            body = body[part]
        except (KeyError, IndexError, TypeError):
            return None
    return body


def encoded(text):
    """A text in a path or a query."""
    return quote(text, safe="")
