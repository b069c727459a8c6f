"""Conditional requests: ETag, If-None-Match, If-Match (RFC 9110, sections 8.8, 13 and 15.4.5)."""

import pytest

from tests.api_client import Client, at_the_same_time, codes, refusal, reply, without_key
from tests.factories import insert_order

pytestmark = pytest.mark.one_database

FAILED = refusal("shop_api_precondition_failed")
SOMETHING_ELSE = '"0123456789abcdef0123456789abcdef"'


@pytest.fixture
def paths(app, make_coupon, make_customer):
    """The reads of a single record."""
    coupon, customer = make_coupon(code="summer"), make_customer(email="ada@example.com")
    order = insert_order(app, customer_id=customer["id"])
    return {
        "coupon": f"/coupons/{coupon['id']}",
        "coupon by code": "/coupons/code/summer",
        "customer": f"/customers/{customer['id']}",
        "customer by e-mail": "/customers/email/ada@example.com",
        "order": f"/orders/{order}",
    }


KINDS = ["coupon", "coupon by code", "customer", "customer by e-mail", "order"]
WRITTEN = ["coupon", "customer"]


def etag_of(client, path):
    return client.get(path).headers["ETag"]


def edit(kind, **fields):
    """A body that changes a record of a kind."""
    return {kind: fields or ({"amount": 5} if kind == "coupon" else {"first_name": "Ada"})}


# --- reads ---


@pytest.mark.parametrize("kind", KINDS)
def test_read_with_the_same_etag_is_304_without_a_body(admin, paths, kind):
    first = admin.get(paths[kind])
    etag = first.headers["ETag"]
    assert etag[0] == etag[-1] == '"'
    again = admin.get(paths[kind], headers={"If-None-Match": etag})
    assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", etag)
    assert again.headers["X-Request-Id"]
    assert not {"Content-Type", "Content-Length"} & set(again.headers.keys())


@pytest.mark.parametrize("kind", KINDS)
def test_read_with_another_etag_is_a_normal_read(admin, paths, kind):
    plain = admin.get(paths[kind])
    conditional = admin.get(paths[kind], headers={"If-None-Match": SOMETHING_ELSE})
    assert reply(conditional) == reply(plain)
    assert conditional.headers["ETag"] == plain.headers["ETag"]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("{etag}", 304),
        ("W/{etag}", 304),
        ("*", 304),
        ('"a", {etag}', 304),
        ('W/"a" ,  W/{etag},"b"', 304),
        ("  {etag}  ", 304),
        ('"a"', 200),
        ("", 200),
        ("{bare}", 200),
        ("no entity tag at all", 200),
        ('"' * 3, 200),
    ],
)
def test_if_none_match_of_a_read(admin, paths, header, status):
    etag = etag_of(admin, paths["coupon"])
    header = header.format(etag=etag, bare=etag.strip('"')[:-1])
    response = admin.get(paths["coupon"], headers={"If-None-Match": header})
    assert response.status_code == status


def test_head_has_the_etag_of_the_read(admin, paths):
    etag = etag_of(admin, paths["coupon"])
    response = admin.request("HEAD", paths["coupon"])
    assert (response.status_code, response.headers["ETag"], response.data) == (200, etag, b"")
    again = admin.request("HEAD", paths["coupon"], headers={"If-None-Match": etag})
    assert again.status_code == 304


@pytest.mark.parametrize(
    ("header", "status"), [("{etag}", 200), ("*", 200), ('"a"', 412), ("W/{etag}", 412)]
)
def test_if_match_of_a_read(admin, paths, header, status):
    header = header.format(etag=etag_of(admin, paths["coupon"]))
    response = admin.get(paths["coupon"], headers={"If-Match": header})
    assert response.status_code == status
    if status == 412:
        assert reply(response) == FAILED


def test_if_match_precedes_if_none_match(admin, paths):
    etag = etag_of(admin, paths["coupon"])
    headers = {"If-Match": SOMETHING_ELSE, "If-None-Match": etag}
    assert reply(admin.get(paths["coupon"], headers=headers)) == FAILED


def test_selection_of_fields_has_an_etag_of_its_own(admin, paths):
    whole = etag_of(admin, paths["coupon"])
    some = admin.get(paths["coupon"], {"fields": "id,code"}).headers["ETag"]
    assert whole != some
    again = admin.get(paths["coupon"], {"fields": "id,code"}, headers={"If-None-Match": some})
    assert again.status_code == 304


def test_one_record_has_one_etag_wherever_it_is_read(admin, paths):
    assert etag_of(admin, paths["coupon"]) == etag_of(admin, paths["coupon by code"])
    assert etag_of(admin, paths["customer"]) == etag_of(admin, paths["customer by e-mail"])


def test_etag_of_a_customer_changes_with_its_orders(app, admin, make_customer):
    customer = make_customer()
    path = f"/customers/{customer['id']}"
    before = etag_of(admin, path)
    insert_order(app, customer_id=customer["id"])
    response = admin.get(path, headers={"If-None-Match": before})
    assert response.status_code == 200
    assert response.get_json()["customer"]["orders_count"] == 1


def test_etag_of_an_order_changes_with_its_customer(admin, paths):
    before = etag_of(admin, paths["order"])
    admin.put(paths["customer"], edit("customer"))
    assert admin.get(paths["order"], headers={"If-None-Match": before}).status_code == 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_rejection_of_a_read_precedes_conditions(client_for, anonymous, paths, kind, header):
    path, headers = paths[kind], {header: "*"}
    customer = client_for("customer")
    plain = customer.get(path)
    assert plain.status_code == 401
    assert reply(customer.get(path, headers=headers)) == reply(plain)
    assert reply(anonymous.get(path, headers=headers)) == reply(anonymous.get(path))
    assert "ETag" not in plain.headers


@pytest.mark.parametrize("path", ["/coupons", "/customers", "/orders", "/coupons/count"])
def test_list_has_no_etag_and_no_conditions(admin, paths, path):
    for header in ("If-Match", "If-None-Match"):
        response = admin.get(path, headers={header: '"a"'})
        assert response.status_code == 200
        assert "ETag" not in response.headers


# --- writes ---


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize(
    ("header", "value", "allowed"),
    [
        ("If-Match", "{etag}", True),
        ("If-Match", '"a", {etag}', True),
        ("If-Match", "*", True),
        ("If-Match", SOMETHING_ELSE, False),
        ("If-Match", "W/{etag}", False),
        ("If-Match", "", False),
        ("If-Match", "no entity tag at all", False),
        ("If-None-Match", SOMETHING_ELSE, True),
        ("If-None-Match", "{etag}", False),
        ("If-None-Match", "W/{etag}", False),
        ("If-None-Match", "*", False),
    ],
)
def test_condition_of_a_write(admin, paths, kind, method, header, value, allowed):
    before = admin.get(paths[kind])
    headers = {header: value.format(etag=before.headers["ETag"])}
    body = edit(kind) if method == "PUT" else None
    response = admin.request(method, paths[kind], json=body, headers=headers)
    after = admin.get(paths[kind])
    if allowed:
        assert response.status_code == 200
        assert after.status_code == (200 if method == "PUT" else 404)
        assert method == "DELETE" or after.headers["ETag"] != before.headers["ETag"]
    else:
        assert reply(response) == FAILED
        assert reply(after) == reply(before)


@pytest.mark.parametrize("kind", WRITTEN)
def test_write_compares_with_the_whole_record(admin, paths, kind):
    some = admin.get(paths[kind], {"fields": "id"}).headers["ETag"]
    assert reply(admin.put(paths[kind], edit(kind), headers={"If-Match": some})) == FAILED


def test_write_of_a_customer_compares_with_its_statistics(app, admin, make_customer):
    customer = make_customer()
    path = f"/customers/{customer['id']}"
    before = etag_of(admin, path)
    insert_order(app, customer_id=customer["id"])
    now = etag_of(admin, path)
    assert reply(admin.put(path, edit("customer"), headers={"If-Match": before})) == FAILED
    assert admin.put(path, edit("customer"), headers={"If-Match": now}).status_code == 200


def test_update_without_changes_checks_its_condition(admin, paths):
    for kind in WRITTEN:
        headers = {"If-Match": SOMETHING_ELSE}
        assert reply(admin.put(paths[kind], {kind: {}}, headers=headers)) == FAILED


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/coupons/{coupon}", {}, "shop_api_missing_coupon_data"),
        ("/coupons/{coupon}", {"coupon": {"amount": "ten"}}, "shop_api_invalid_param"),
        ("/coupons/99999", {"coupon": {}}, "shop_api_invalid_coupon_id"),
        ("/customers/{customer}", {}, "shop_api_missing_customer_data"),
        ("/customers/0", {"customer": {}}, "shop_api_invalid_customer_id"),
        ("/customers/99999", {"customer": {}}, "shop_api_invalid_customer"),
    ],
)
def test_errors_that_precede_the_condition_of_an_update(admin, paths, path, body, code):
    ids = {name: paths[name].split("/")[-1] for name in WRITTEN}
    response = admin.put(path.format(**ids), body, headers={"If-Match": '"a"'})
    assert response.get_json()["errors"][0]["code"] == code
    assert response.status_code == (404 if code == "shop_api_invalid_coupon_id" else 400)


def test_capability_precedes_the_condition(client_for, paths):
    nobody = client_for("customer")
    for kind in WRITTEN:
        for method, body in (("PUT", edit(kind)), ("DELETE", None)):
            plain = reply(nobody.request(method, paths[kind], json=body))
            headers = {"If-Match": '"a"'}
            assert reply(nobody.request(method, paths[kind], json=body, headers=headers)) == plain
            assert plain[1]["errors"][0]["code"].startswith("shop_api_user_cannot_")


def test_condition_precedes_the_checks_of_the_new_values(admin, paths, make_coupon):
    make_coupon(code="winter")
    for fields in ({"code": "winter"}, {"type": "no such type"}, {"code": ""}):
        headers = {"If-Match": SOMETHING_ELSE}
        assert reply(admin.put(paths["coupon"], {"coupon": fields}, headers=headers)) == FAILED


def test_own_account_precedes_the_condition(admin):
    path = f"/customers/{admin.key.user_id}"
    response = admin.delete(path, headers={"If-Match": SOMETHING_ELSE})
    assert reply(response) == refusal("shop_api_cannot_delete_customer")


@pytest.mark.parametrize("kind", WRITTEN)
def test_one_of_several_concurrent_updates_with_one_etag_succeeds(admin, paths, kind):
    etag = etag_of(admin, paths[kind])
    names = ["description"] if kind == "coupon" else ["first_name"]

    def run(number):
        client = Client(admin.app, admin.key)
        body = {kind: dict.fromkeys(names, f"by {number}")}
        return client.put(paths[kind], body, headers={"If-Match": etag})

    responses = at_the_same_time(run, range(6))
    (edited,) = (response for response in responses if response.status_code == 200)
    assert [reply(r) for r in responses if r is not edited] == [FAILED] * 5
    assert admin.get(paths[kind]).get_json() == edited.get_json()


# --- the legacy API ---


def test_legacy_record_has_the_etag_of_its_own_form(admin, paths):
    native, legacy = paths["customer"], f"/wc-api/v3{paths['customer']}"
    etag = etag_of(admin, legacy)
    assert etag != etag_of(admin, native)  # it has last_update
    assert admin.get(legacy, headers={"If-None-Match": etag}).status_code == 304
    for method in ("PUT", "POST"):
        refused = admin.request(
            method, legacy, json=edit("customer"), headers={"If-Match": SOMETHING_ELSE}
        )
        assert codes(refused) == (412, "woocommerce_api_precondition_failed")
    edited = admin.post(legacy, edit("customer"), headers={"If-Match": etag})
    assert edited.status_code == 200


# --- who sends neither ---


@pytest.mark.parametrize(
    ("kind", "method", "count"),
    [
        ("coupon", "GET", 1),  # the record
        ("coupon", "PUT", 3),  # the record, the update, the event
        ("coupon", "DELETE", 3),
        ("customer", "GET", 1),
        ("customer", "PUT", 5),  # ... and what the account may do, and its statistics
        # ... and its webhooks, merged accounts, and the erasure of its orders, redemptions, events,
        # imports and responses.
        ("customer", "DELETE", 31),
    ],
)
def test_request_without_conditions_needs_no_further_statement(
    admin, paths, statements, kind, method, count
):
    body = edit(kind) if method == "PUT" else None
    statements.clear()
    assert admin.request(method, paths[kind], json=body).status_code == 200
    assert len(without_key(statements)) == count, statements


def test_write_response_has_no_etag(admin, paths):
    # RFC 9110, section 9.3.4: only for a PUT that stores the body without changes.
    assert "ETag" not in admin.put(paths["coupon"], edit("coupon")).headers
