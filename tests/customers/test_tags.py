"""Tags of customers (campaigns 1 and 5)."""

import pytest

from tests.api_client import codes, refused_params


def tags(client, customer_id):
    query = {"fields": "id,tags"}
    return client.get(f"/customers/{customer_id}", query).get_json()["customer"]["tags"]


def found(client, **query):
    response = client.get("/customers", {"fields": "id", **query})
    count = client.get("/customers/count", query).get_json()["count"]
    assert response.headers["X-Total"] == str(count)
    return [each["id"] for each in response.get_json()["customers"]]


@pytest.mark.both_databases
def test_tags_find_customers(admin, make_customer):
    ann, bob = (
        make_customer(email=f"{name}@example.com", tags=given)
        for name, given in (("ann", ["VIP", "a b", "vip"]), ("bob", []))
    )
    items = [{"id": bob["id"], "tags": ["vip"]}, {"email": "new@example.com", "tags": ["x"]}]
    admin.post("/customers/bulk", {"customers": items})
    assert found(admin, tag="ViP") == [ann["id"], bob["id"]]
    assert found(admin, tag="vip", role="all", orderby="id", order="desc") == [bob["id"], ann["id"]]
    assert found(admin, tag="vip", q="ann") == [ann["id"]]
    assert found(admin, tag="nobody") == []
    admin.put(f"/customers/{ann['id']}", {"customer": {"first_name": "Ann"}})
    assert found(admin, tag="a b") == [ann["id"]]
    admin.put(f"/customers/{ann['id']}", {"customer": {"tags": []}})
    assert found(admin, tag="vip") == [bob["id"]]
    admin.delete(f"/customers/{bob['id']}")
    assert found(admin, tag="vip") == []


def test_tags_have_the_rules_of_tags(admin, make_customer):
    customer = make_customer()
    for given in ("vip", ["-a"], ["role:a"], ["x" * 65], [str(number) for number in range(51)]):
        response = admin.put(f"/customers/{customer['id']}", {"customer": {"tags": given}})
        assert refused_params(response) == ["customer.tags"]


def test_a_rejected_item_writes_no_tags(admin, make_customer):
    customer = make_customer(email="ann@example.com")
    wrong = {"tags": ["vip"], "metadata": {"": 1}}
    new = {"email": "new@example.com", **wrong}
    assert codes(admin.post("/customers", {"customer": new})) == (400, "shop_api_invalid_metadata")
    items = {"customers": [{"id": customer["id"], **wrong}, new]}
    results = admin.post("/customers/bulk", items).get_json()["customers"]
    assert [each["error"]["code"] for each in results] == ["shop_api_invalid_metadata"] * 2
    assert found(admin, tag="vip") == []


def test_the_entity_tag_guards_tags(admin, make_customer):
    path = f"/customers/{make_customer()['id']}"
    tag = admin.get(path).headers["ETag"]
    for code in ((200,), (412, "shop_api_precondition_failed")):
        response = admin.put(path, {"customer": {"tags": ["a"]}}, headers={"If-Match": tag})
        assert response.status_code == code[0]
    assert codes(response) == code


def test_the_legacy_api_ignores_and_keeps_tags(admin, make_customer):
    customer = make_customer(tags=["vip"])
    path = f"/wc-api/v3/customers/{customer['id']}"
    response = admin.put(path, {"customer": {"tags": ["x"], "first_name": "A"}})
    assert "tags" not in response.get_json()["customer"]
    assert admin.get(path, {"fields": "tags"}).get_json() == {"customer": {}}
    assert tags(admin, customer["id"]) == ["vip"]


def test_tags_are_blanked_in_events_of_a_deleted_customer(admin, make_customer):
    customer = make_customer(tags=["vip"])

    def stored():
        events = admin.get("/events", {"filter[resource]": "customer"}).get_json()["events"]
        return [event["data"]["customer"].get("tags") for event in events]

    assert stored() == [["vip"]]
    admin.delete(f"/customers/{customer['id']}")
    assert stored() == [[], None]
