"""Extraction of the texts of the admin pages for Babel (``babel.cfg``).

Babel finds ``_("Save")``. This finds also the texts that a page translates where it shows them:
those in constants and in attributes of classes, the labels of fields, which the schemas of the API
have, and the words for names of the API.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from io import BufferedIOBase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import marshmallow as ma
from babel.messages.extract import extract_python

Message = tuple[int, str | None, str | tuple[str, ...], list[str]]

APP = Path(__file__).parents[1] / "app"

REJECTING = (
    "api",
    "auth",
    "conversions",
    "import_export",
    "outbound",
    "pricing",
    "schemas",
    "services",
)
"""The folders whose code raises the errors of the API, and states reasons in REASONS."""

STATING = {
    "Line",
    "_unreadable",
    "Sentence",
    "invalid",
    "invalid_metadata",
    "ValueError",
    "ValidationError",
    "InvalidParams",
    "InvalidOrderItems",
    "InvalidRefund",
    "authentication_error",
    "fail_import",
    "unavailable",
}
"""The calls whose arguments state a reason."""

NAMES = {
    "REASONS",
    "OTHER_REASONS",
    "REMEDY",
    "NEEDS_NAME",
    "NEEDS_PRICE",
    "_OTHER_FILES",
    "LOST_RIGHTS",
    "PROCESS_ENDED",
    "BY_A_USER",
    "NOT_READABLE",
    "NO_USER",
    "NO_CAPABILITY",
    "GONE",
    "FAILING",
    "UNEXPECTED",
    "(REFUSED, TIMEOUT, FAILED)",
}
"""The constants that state reasons."""

_TEXT = re.compile(r"[A-Z](?!\w*[A-Z_]).*[a-z.]", re.DOTALL)
"""A label or a sentence: neither a name of a setting nor a name of a program."""


def extract(
    file: BufferedIOBase,
    keywords: Mapping[str, object],
    comment_tags: Collection[str],
    options: Mapping[str, str],
) -> Iterator[Message]:
    """Yield the messages of a module: line, function, text and comments."""
    yield from extract_python(file, keywords, comment_tags, options)
    file.seek(0)
    for node in _constants(ast.parse(file.read()).body):
        if isinstance(node.value, str) and _TEXT.fullmatch(node.value):
            yield node.lineno, None, node.value, []
    if options.get("of_api"):
        yield from ((0, None, text, []) for text in sorted(set(_texts_of_api())) if text)


def _constants(body: Iterable[ast.stmt]) -> Iterator[ast.Constant]:
    """Yield the literals in the constants of a module and in the attributes of its classes."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from _constants(statement.body)
        value = getattr(statement, "value", None)
        is_docstring = isinstance(statement, ast.Expr) and isinstance(value, ast.Constant)
        if value and not is_docstring:
            yield from (each for each in ast.walk(value) if isinstance(each, ast.Constant))


def _texts_of_api() -> Iterator[str]:
    """Yield what the pages show of the API: labels and help of fields, statuses, and words."""
    # Imported here, because Babel loads this module also for the texts of other packages.
    from app import create_app  # noqa: PLC0415  # see above
    from app.auth.principals import ROLES  # noqa: PLC0415  # see above
    from app.catalog import current_catalog  # noqa: PLC0415  # see above
    from app.errors.codes import ERRORS  # noqa: PLC0415  # see above
    from app.models.import_run import ImportStatus  # noqa: PLC0415  # see above
    from app.models.webhook import WebhookStatus  # noqa: PLC0415  # see above
    from app.plugins.admin import form_fields, html  # noqa: PLC0415  # see above
    from app.schemas.base import Base  # noqa: PLC0415  # see above
    from app.schemas.coupons.coupon import CouponSchema  # noqa: PLC0415  # see above
    from app.schemas.customers import CustomerSchema  # noqa: PLC0415  # see above
    from app.schemas.fields.form import FORM  # noqa: PLC0415  # see above
    from app.schemas.orders.order import OrderSchema  # noqa: PLC0415  # see above

    yield from (message for _, message in ERRORS.values())
    yield from _reasons()
    with TemporaryDirectory() as folder:
        app = create_app({
            "SECRET_KEY": "-" * 32, "DATABASE_URL": f"sqlite:///{folder}/shop.db",
            "INSTANCE_PATH": folder,
        })  # fmt: skip
    with app.app_context():
        catalog = current_catalog()
        records = (_fields(schema) for schema in (CouponSchema, CustomerSchema, OrderSchema))
        fields = {name for each in records for name in each}
        names = {"all", *catalog.resources, *catalog.event_resources, *ROLES, *fields}
        yield from map(html.words, names)
        yield from (*catalog.order_statuses.values(), *ImportStatus, *WebhookStatus)
        for schema in _subclasses(Base):
            if any(FORM in field.metadata for field in schema._declared_fields.values()):
                for spec in form_fields.specs_of(schema):
                    yield from (spec.label, spec.help, spec.form.section)


def _reasons() -> Iterator[str]:
    """Yield the sentences with which errors state a reason, with placeholders for values."""
    for module in (path for folder in REJECTING for path in (APP / folder).rglob("*.py")):
        if module.name == "restored_values.py":  # a command prints its errors
            continue
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in NAMES:
                found = (
                    node.value.values if isinstance(node.value, ast.Dict) else ast.walk(node.value)
                )
                yield from (str(each.value) for each in found if isinstance(each, ast.Constant))
            is_sentence = isinstance(node, ast.Call) and ast.unparse(node.func) == "Sentence"
            for value in _stated(node):
                yield from (
                    text
                    for text in _sentences(value)
                    if (is_sentence or " " in text) and re.search("[a-z]{3}", text)
                )


def _stated(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a statement or a call states as a reason."""
    if isinstance(node, ast.Assign) and re.search(
        r"errors\[.*\]$|^reason$|^hint$|^message$|^missing$|^invalid$|^by_command$|^template$|^_LOSS$",
        ast.unparse(node.targets[0]),
    ):
        yield node.value
    if isinstance(node, ast.FunctionDef) and node.name.endswith(("error", "loss")):
        yield from (
            each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value
        )
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        yield from (
            each.value
            for each in node.keywords
            if each.arg in {"reason", "remedy", "more", "message"}
        )
        for argument in node.args if name in STATING else ():
            yield from argument.values if isinstance(argument, ast.Dict) else [argument]


def _sentences(value: ast.expr) -> Iterator[str]:
    """Yield the texts of an expression: a literal, or two of a condition."""
    if isinstance(value, ast.Constant):
        yield str(value.value)
    if isinstance(value, ast.IfExp):
        yield from (*_sentences(value.body), *_sentences(value.orelse))


def _fields(schema: type[ma.Schema]) -> Iterator[str]:
    """Yield the names of the fields of a record and of their parts, which its history shows."""
    for name, field in schema._declared_fields.items():
        yield name
        part: Any = getattr(field, "nested", None)
        if isinstance(part, type):
            yield from _fields(part)


def _subclasses(of: type) -> Iterator[type]:
    for each in of.__subclasses__():
        yield each
        yield from _subclasses(each)
