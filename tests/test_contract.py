"""Requests made up from the OpenAPI document: what it says is what happens (decisions 10).

Schemathesis reads the document and sends what it allows, what it forbids, and chains of requests,
the same ones for the same seed. Its own checks look at each answer, and ours holds the input to
the document both ways. ``make test`` sends few generated requests of each kind to each operation,
``make test-all`` sends many, on both databases. ``CONTRACT_EXAMPLES`` sets how many that are, and
``CONTRACT_SEED`` generates other ones.
"""

import json
import os
import re
from base64 import b64encode
from urllib.parse import parse_qs, urlsplit

import pytest
import schemathesis
from conftest import codes
from jsonschema import Draft202012Validator
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import Status, events, from_schema

from tests.factories import insert_download, insert_order

FEW = 5
MANY = int(os.environ.get("CONTRACT_EXAMPLES", "30"))
SEED = int(os.environ.get("CONTRACT_SEED", "1"))

INVALID = "shop_api_invalid_param"

# Input that the specification wants understood although the document does not offer it.
FORGIVEN = {
    # spec 2.1: true only for exactly true, any other value is false
    **dict.fromkeys(["individual_use", "enable_free_shipping", "exclude_sale_items"], lambda _: True),
    # orders 2 and 9: paid, compound, on_sale and remove take effect only when they are true
    **dict.fromkeys(["paid", "compound", "on_sale", "remove"], lambda _: True),
    # spec 2.1: any date string; the document promises the forms that decisions 4 lists
    "expiry_date": lambda value: isinstance(value, str),
    # decisions 3: what begins with an integer; the document promises 18 digits, 64 bits have 19
    **dict.fromkeys(
        [
            "usage_limit", "usage_limit_per_user", "limit_usage_to_x_items", "usage_count",
            "product_ids", "exclude_product_ids", "product_category_ids",
            "exclude_product_category_ids", "product_id", "rate_id", "id",
        ],
        lambda value: isinstance(value, str) and value.lstrip(" +-0")[:19].isdigit(),
    ),
    # decisions 3: a fraction is dropped
    "customer_id": lambda value: isinstance(value, str | float),
    "quantity": lambda value: isinstance(value, str | float | bool),
    # decisions 3: any decimal; of exponents the document promises those that cannot go too far
    **dict.fromkeys(
        [
            "amount", "minimum_amount", "maximum_amount", "price", "subtotal", "total",
            "subtotal_tax", "total_tax", "shipping_tax",
        ],
        lambda value: isinstance(value, str) and "e" in value.lower(),
    ),
    # decisions 3: any decimal, and numbers as well as text
    "price": lambda value: isinstance(value, str | int | float),
    # orders 7: true only for exactly true
    "customer_note": lambda _: True,
    # decisions 3: what begins with an integer
    "expires_in": lambda value: isinstance(value, str | bool),
    # decisions 6: any ISO form
    **dict.fromkeys(
        [f"filter[{name}_at_{end}]" for name in ("created", "updated") for end in ("min", "max")],
        lambda _: True,
    ),
    # orders 9: created_at and completed_at in any ISO form
    **dict.fromkeys(["created_at", "completed_at"], lambda value: isinstance(value, str)),
    # decisions 3: a string is a number, too
    **dict.fromkeys(["order_number", "order_key"], lambda value: not isinstance(value, str)),
    # decisions 5: in any case
    "filter[order]": lambda value: value.lower() in {"asc", "desc"},
    # decisions 13: an address is valid by RFC 6531, which knows some that the format does not
    "email": lambda value: isinstance(value, str),
}  # fmt: skip
# Checks of Schemathesis that cannot hold by the specification, and where. Ours looks there instead.
EXCLUDED = {
    "negative_data_rejection": [
        # decisions 3: text that begins with an integer, numbers as text
        "POST /redemptions",
        "POST /coupons/evaluate",
        # of a repeated parameter, the first value counts
        "DELETE /coupons/trash",
        "DELETE /orders/trash",
        # orders 7: any value of a flag but true is false
        "POST /orders/{order_id}/notes",
        # decisions 6: the filters of the list
        "GET /coupons/trash",
        # spec 2.1: any value of a flag but true is false, any date string is a date
        "POST /coupons",
        "PUT /coupons/{coupon_id}",
        # spec 4.3 rule 4: a wrong item fails alone, the answer is 200
        "POST /coupons/bulk",
        "PUT /coupons/bulk",
        "POST /customers/bulk",
        "PUT /customers/bulk",
        "POST /orders/bulk",
        "PUT /orders/bulk",
        # orders 2 and 9: any value of a flag but true is false, numbers are text
        "POST /orders",
        "PUT /orders/{order_id}",
        "GET /orders/trash",
        # decisions 6: the filters of the list
        "GET /redemptions",
        "GET /redemptions/count",
        # decisions 5 and 6: the direction in any case, a date in any ISO form
        "GET /coupons",
        "GET /coupons/count",
        "GET /customers",
        "GET /customers/count",
        "GET /orders",
        "GET /orders/count",
    ],
    "positive_data_acceptance": [
        # redemptions 6: an account, a code or a reference that is not accepted (400)
        "POST /redemptions",
        "POST /coupons/evaluate",
        # decisions 6: the filters of the list
        "GET /redemptions",
        "GET /redemptions/count",
        # orders 7: a note of blanks has no text (400)
        "POST /orders/{order_id}/notes",
        "PUT /orders/{order_id}/notes/{note_id}",
        # orders 4: the code can have been taken in the meantime (400)
        "POST /coupons/{coupon_id}/restore",
        # decisions 6: the filters of the list
        "GET /coupons/trash",
        # spec 4.1, 4.2: what an account or a coupon has already, another one cannot have (400)
        "POST /coupons",
        "PUT /coupons/{coupon_id}",
        "POST /customers",
        # spec 4.2, edit rule 2: an id that is not found is answered with 400
        "PUT /customers/{customer_id}",
        # orders 5: an account, a status or an item that is not accepted (400)
        "POST /orders",
        "PUT /orders/{order_id}",
        "GET /orders/trash",
        # decisions 5: the caller's own account stays (400)
        "DELETE /customers/{customer_id}",
        # decisions 13: meta_value needs a key; decisions 6: a day that no calendar has (400)
        "GET /coupons",
        "GET /coupons/count",
        "GET /customers",
        "GET /customers/count",
        "GET /orders",
        "GET /orders/count",
    ],
}
# 412: a made-up entity tag is well-formed and matches nothing (RFC 9110). 422: a made-up
# Idempotency-Key is well-formed, and was made up before.
ACCEPTED = ["2xx", "3xx", 401, 403, 404, 409, 412, 422, 429, "5xx"]
# What the document allows and no calendar has: 2030-02-31, or 9999-12-31T23:59:59-05:00.
NO_DAY = re.compile(r"(?<![0-9])(29|30|31)(?![0-9])|9999")


@schemathesis.check
def input_is_understood_as_documented(ctx, response, case):
    """What the document allows is no ``shop_api_invalid_param``, what it forbids is not accepted."""
    document = case.operation.schema.raw_schema
    operation = document["paths"][case.operation.path].get(response.request.method.lower())
    if operation is None or response.status_code not in {200, 201, 400}:
        return
    query = parse_qs(urlsplit(response.request.url).query, keep_blank_values=True)
    # Which of several values counts is nobody's promise.
    several = {name for name, values in query.items() if len(values) > 1}
    once = {name: values[0] for name, values in query.items() if name not in several}
    wrong = wrong_parameters(operation, once) | wrong_headers(operation, response.request.headers)
    if "requestBody" in operation:
        wrong |= wrong_inputs(document, operation, response.request.body)
    answer = json.loads(response.content)
    if response.status_code == 400:
        refused = {
            re.sub(r"\[(\d+)\]", r".\1", entry["param"])  # order.line_items[2].price
            if entry["param"].startswith(("order.", "cart."))
            else entry["param"]
            for entry in answer["errors"]
            if entry["code"] == INVALID
        }
        # decisions 13: meta_value needs a key
        for name in refused - several - {"filter[orderby_meta_key]"}:
            known = any(f"{bad}.".startswith(f"{name}.") for bad in wrong)
            date = once.get(name) or (name.count(".") == 1 and written(response, name))
            impossible = "date" in name or "_at_" in name or name.endswith("_at")
            assert known or (impossible and NO_DAY.search(date)), (
                f"refused although allowed: {name}"
            )
        return
    for name, value in wrong.items():
        if case.operation.path.endswith("/bulk"):
            results = next(iter(answer.values()))
            if "error" in results[int(name.split(".")[1])]:
                continue  # spec 4.3 rule 4: a wrong item fails alone
        forgiven = FORGIVEN.get(field_of(name), lambda _: False)
        assert forgiven(value), f"accepted although forbidden: {name} = {value!r}"


def written(response, name):
    """The value of a field of the record that was sent."""
    wrapper, field = name.split(".")
    return str(json.loads(response.request.body)[wrapper].get(field))


def field_of(name):
    """The field that an input belongs to: product_ids of coupon.product_ids.3."""
    return [part for part in name.split(".") if not part.isdigit()][-1]


def wrong_parameters(operation, sent):
    """The query parameters that the document forbids; an empty one is not supplied."""
    wrong = {}
    for parameter in operation.get("parameters", []):
        name, schema = parameter["name"], parameter["schema"]
        value = sent.get(name)
        if value is None or (not value.strip(" \t\n\v\f\r") and name != "page"):
            continue
        if schema["type"] == "integer" and re.fullmatch(r"\s*[+-]?[0-9]+\s*", value):
            value = int(value)
        if not Draft202012Validator(schema).is_valid(value):
            wrong[name] = value
    return wrong


def wrong_headers(operation, sent):
    """The headers that the document forbids."""
    return {
        parameter["name"]: sent[parameter["name"]]
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "header"
        and parameter["name"] in sent
        and not Draft202012Validator(parameter["schema"]).is_valid(sent[parameter["name"]])
    }


def wrong_inputs(document, operation, body):
    """The inputs of a body that the document forbids; none of a body without its key (400)."""
    try:
        loaded = json.loads(body or b"")
    except ValueError:
        return {}
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    validator = Draft202012Validator({**schema, "components": document["components"]})
    errors = validator.iter_errors(loaded) if isinstance(loaded, dict) else ()
    return {
        ".".join(map(str, [*leaf.absolute_path, *names])): leaf.instance
        for error in errors
        for leaf in leaves(error)
        for names in missing_names(leaf)
    }


def missing_names(leaf):
    """What to append to the path of an error: the name of each required property that is missing."""
    if leaf.validator != "required":
        return [()]
    return [(name,) for name in leaf.validator_value if name not in leaf.instance]


def leaves(error):
    """What exactly is wrong: of "an address, or null", what is wrong in the address."""
    depth = len(error.absolute_path)
    inner = [each for each in error.context if len(each.absolute_path) > depth]
    return [leaf for each in inner for leaf in leaves(each)] or [error]


def configuration(key, examples):
    return SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            "auth": {"basic": {"username": key.consumer_key, "password": key.consumer_secret}},
            # All boundary values of all inputs, the same ones for any number of examples.
            "phases": {"coverage": {"enabled": examples >= MANY}},
            "generation": {
                "max-examples": examples,
                "database": "none",  # nothing of an earlier run: the seed alone decides
                # Unknown parameters are ignored (decisions 6), so they are no wrong input.
                "allow-extra-parameters": False,
                # The key is always sent; without and with another one: test_auth.py, ignored_auth.
                "with-security-parameters": False,
            },
            # It cannot speak to an app in the same process (4.32); test_credentials_are_demanded does.
            "checks": {
                "ignored_auth": {"enabled": False},
                "positive_data_acceptance": {"expected-statuses": ACCEPTED},
            },
            "operations": [
                {"include-name": operation, "checks": {check: {"enabled": False}}}
                for check, operations in EXCLUDED.items()
                for operation in operations
            ],
        }
    )


@pytest.mark.parametrize(
    ("database_url", "examples"),
    [
        ("sqlite", FEW),
        pytest.param("sqlite", MANY, marks=pytest.mark.slow),
        pytest.param("postgresql", MANY, marks=pytest.mark.slow),
    ],
    indirect=["database_url"],
    scope="session",
)
def test_contract(app, admin, make_customer, examples):
    customer = make_customer()["id"]
    order = insert_order(app, customer_id=customer)
    insert_download(app, order)
    settings = configuration(admin.key, examples)
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app, config=settings)
    failures = {}
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            failures[repr(event)] = "the test itself"
        if isinstance(event, events.ScenarioFinished):
            failures |= failures_of(event.recorder)
    assert not failures, "\n\n".join(f"{what}\n{how}" for what, how in failures.items())


def failures_of(recorder):
    """What checks found in a chain of requests, and by which request."""
    found = {}
    for case_id, checks in recorder.checks.items():
        for check in checks:
            if check.status == Status.FAILURE:
                label = recorder.cases[case_id].value.operation.label
                answer = recorder.interactions[case_id].response
                told = check.failure_info
                what = f"{check.name}, {label}: {told.failure.title}\n{told.failure.message[:500]}"
                found[what] = (
                    f"{told.code_sample[:2000]}\n{answer.status_code} {answer.content[:500]}"
                )
    return found


@pytest.mark.one_database
def test_credentials_are_demanded(app, anonymous):
    paths = anonymous.get("/openapi.json").get_json()["paths"]
    secured = [
        (method.upper(), re.sub(r"\{\w+\}", "1", path))
        for path, item in paths.items()
        for method, operation in item.items()
        if method != "parameters" and "security" in operation
    ]
    assert len(secured) == 47
    wrong = {"Authorization": f"Basic {b64encode(b'ck_x:cs_x').decode()}"}
    for method, path in secured:
        for headers in ({}, wrong):
            response = anonymous.request(method, path, headers=headers)
            assert codes(response) == (401, "shop_api_authentication_error"), (method, path)
            assert response.headers["WWW-Authenticate"].startswith("Basic ")
