"""The examples of the OpenAPI document match the responses of the service."""

import pytest
from jsonschema import Draft202012Validator

from app.schemas.examples import coupons, customers

pytestmark = pytest.mark.one_database

TIMES = ("created_at", "updated_at")


def timeless(record):
    """A record without its timestamps."""
    return {name: value for name, value in record.items() if name not in TIMES}


def with_ids(record, real_id):
    return record | {"id": real_id} if record.get("id") else record


CASES = [
    ("coupons", "coupon", coupons.NEW_COUPON, coupons.COUPON, coupons.COUPON_UPDATE,
     coupons.UPDATED_COUPON, coupons.COUPON_ITEMS, coupons.COUPON_RESULTS),
    ("customers", "customer", customers.NEW_CUSTOMER, customers.CUSTOMER, customers.CUSTOMER_UPDATE,
     customers.UPDATED_CUSTOMER, customers.CUSTOMER_ITEMS, customers.CUSTOMER_RESULTS),
]  # fmt: skip


@pytest.mark.parametrize(
    ("plural", "single", "new", "shown", "edit", "edited", "items", "results"),
    CASES,
    ids=["coupons", "customers"],
)
def test_example_of_create_update_and_bulk(
    admin, plural, single, new, shown, edit, edited, items, results
):
    created = admin.post(f"/{plural}", {single: new})
    real_id = created.get_json()[single]["id"]
    assert created.status_code == 201
    assert timeless(created.get_json()[single]) == timeless(with_ids(shown, real_id))
    changed = admin.put(f"/{plural}/{real_id}", {single: edit}).get_json()[single]
    assert timeless(changed) == timeless(with_ids(edited, real_id))
    # The bulk example begins with an empty shop: its first item makes the record of the second.
    force = {"force": "true"} if plural == "coupons" else None
    assert admin.delete(f"/{plural}/{real_id}", force).status_code == 200
    first = admin.post(f"/{plural}", {single: new}).get_json()[single]["id"]
    answered = admin.post(
        f"/{plural}/bulk", {plural: [with_ids(item, first) for item in items[1:]]}
    ).get_json()[plural]
    expected = [timeless(with_ids(result, first)) for result in results[1:]]
    assert [timeless(result) for result in answered] == expected
    assert results[0] == shown
    assert items[0] == new


def bodies(document):
    """Every request and response body of the document that has an example, with its schema."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            parts = {"request": operation.get("requestBody", {}), **operation["responses"]}
            for name, part in parts.items():
                content = part.get("content", {}).get("application/json", {})
                shown = [content["example"]] if "example" in content else []
                if name == "request" and content:
                    component = content["schema"]["$ref"].rpartition("/")[2]
                    shown += document["components"]["schemas"][component]["examples"]
                shown += [each["value"] for each in content.get("examples", {}).values()]
                for example in shown:
                    yield f"{method.upper()} {path} {name}", content["schema"], example


def test_every_example_fits_its_schema(session_app):
    document = session_app.test_client().get("/openapi.json").get_json()
    seen = set()
    for label, schema, example in bodies(document):
        whole = {**schema, "components": document["components"]}
        assert list(Draft202012Validator(whole).iter_errors(example)) == [], label
        seen.add(label)
    operations = [
        f"{method.upper()} {path}"
        for path, item in document["paths"].items()
        for method in item
        if method != "parameters"
    ]
    succeeded = {label.rpartition(" ")[0] for label in seen if label.endswith((" 200", " 201"))}
    assert sorted(set(operations) - succeeded) == []
