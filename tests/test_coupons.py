"""Single coupons: read, create, update, delete and permissions (spec 2.1, 3, 4.1, 5; decisions 2, 4, 13)."""

import re
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from conftest import codes, refusal, refused_params, reply

from app.auth.principals import ROLES, Capability
from app.db.session import run_in_transaction
from app.models import User

DEFAULTS = {
    "type": "fixed_cart",
    "amount": "0.00",
    "individual_use": False,
    "product_ids": [],
    "exclude_product_ids": [],
    "usage_limit": None,
    "usage_limit_per_user": None,
    "limit_usage_to_x_items": 0,
    "usage_count": 0,
    "expiry_date": None,
    "enable_free_shipping": False,
    "product_category_ids": [],
    "exclude_product_category_ids": [],
    "exclude_sale_items": False,
    "minimum_amount": "0.00",
    "maximum_amount": "0.00",
    "customer_emails": [],
    "description": "",
}
# Every input field, with a value that is not its default, and how it is read again.
EVERY_FIELD = {
    "code": ("Everything", "everything"),
    "type": ("percent", "percent"),
    "amount": ("12.5", "12.50"),
    "individual_use": (True, True),
    "product_ids": ([3, 1], [3, 1]),
    "exclude_product_ids": ([4], [4]),
    "usage_limit": (100, 100),
    "usage_limit_per_user": (1, 1),
    "limit_usage_to_x_items": (5, 5),
    "usage_count": (2, 2),
    "expiry_date": ("2030-12-31", "2030-12-31T00:00:00Z"),
    "enable_free_shipping": (True, True),
    "product_category_ids": ([7], [7]),
    "exclude_product_category_ids": ([8, 9], [8, 9]),
    "exclude_sale_items": (True, True),
    "minimum_amount": (10, "10.00"),
    "maximum_amount": ("99.99", "99.99"),
    "customer_emails": (["ann@example.com"], ["ann@example.com"]),
    "description": ("All of it", "All of it"),
}
INPUT = {name: given for name, (given, _) in EVERY_FIELD.items()}
OUTPUT = {name: read for name, (_, read) in EVERY_FIELD.items()}
FIELDS = ["id", "code", "type", "created_at", "updated_at", *list(DEFAULTS)[1:]]
LONG_AGO = datetime(2020, 2, 29, 12, 30, 15, tzinfo=UTC)
TYPES = (
    "Invalid coupon type - the coupon type must be any of these: "
    "fixed_cart, percent, fixed_product, percent_product"
)
INVALID_TYPE = (400, {"errors": [{"code": "shop_api_invalid_coupon_type", "message": TYPES}]})
TRASHED = (200, {"message": "Deleted coupon"})
REMOVED = (200, {"message": "Permanently deleted coupon"})
GONE = refusal("shop_api_invalid_coupon_id")
NO_CODE = refusal("shop_api_invalid_coupon_code")
TAKEN = refusal("shop_api_coupon_code_already_exists")


def by_code(client, code):
    return client.get(f"/coupons/code/{quote(code)}")


def read(client, coupon_id):
    return client.get(f"/coupons/{coupon_id}").get_json()["coupon"]


def edit(client, coupon_id, **fields):
    return client.put(f"/coupons/{coupon_id}", {"coupon": fields})


def count(client):
    return client.get("/coupons/count").get_json()


# --- read ---


def test_read_by_id(admin, make_coupon):
    make_coupon()
    coupon = make_coupon()
    assert reply(admin.get(f"/coupons/{coupon['id']}")) == (200, {"coupon": coupon})


def test_read_has_the_fields_of_the_table_in_their_order(admin, make_coupon):
    assert list(read(admin, make_coupon()["id"])) == FIELDS


def test_read_by_id_with_leading_zeros(admin, make_coupon):
    coupon = make_coupon()
    assert reply(admin.get(f"/coupons/000{coupon['id']}")) == (200, {"coupon": coupon})


@pytest.mark.parametrize("coupon_id", [0, 999, 2**31, 2**63 - 1, 2**63, 2**64 + 1, 10**30, 10**400])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_unknown_id(admin, make_coupon, method, coupon_id):
    make_coupon()
    response = admin.request(method, f"/coupons/{coupon_id}", json={"coupon": {"amount": 1}})
    assert reply(response) == GONE


def test_update_of_id_0_creates_nothing(admin):
    assert reply(edit(admin, 0, code="summer")) == GONE
    assert count(admin) == {"count": 0}


@pytest.mark.one_database
@pytest.mark.parametrize("word", ["abc", "1a", "-1", "1.5", "+1", "%20", "1%20", "٣", "1,2"])
def test_id_of_other_than_digits_has_no_route(admin, make_coupon, word):
    make_coupon()
    assert reply(admin.get(f"/coupons/{word}")) == refusal("shop_api_no_route")


@pytest.mark.parametrize("code", ["summer", "0", "a_b", "_", "a-b-", "été", "дядя", "สวัสดี", "a b"])
def test_read_by_code(admin, make_coupon, code):
    make_coupon(code="another")
    coupon = make_coupon(code=code)
    assert reply(by_code(admin, code)) == (200, {"coupon": coupon})


@pytest.mark.parametrize(
    "spelling",
    ["Big Summer", "BIG SUMMER", "big  summer", "big\tsummer", "big summer ", "big\nsummer"],
)
def test_read_by_code_is_normalized_as_on_create(admin, make_coupon, spelling):
    coupon = make_coupon(code=" Big \t Summer")
    assert reply(by_code(admin, spelling)) == (200, {"coupon": coupon})


def test_read_by_code_composes_accents(admin, make_coupon):
    coupon = make_coupon(code="caf\u00e9")
    assert reply(by_code(admin, "CAFE\u0301")) == (200, {"coupon": coupon})


@pytest.mark.parametrize("code", ["unknown", "summe", "summer1", "a" * 1000])
def test_read_by_code_unknown(admin, make_coupon, code):
    make_coupon(code="summer")
    assert reply(by_code(admin, code)) == NO_CODE


@pytest.mark.one_database
@pytest.mark.parametrize(
    "code",
    ["-summer", " summer", "sum.mer", "sum+mer", "50%", "a&b", "a<b>", "a/b", "a;b", "\0", "a\0b"],
)
def test_read_by_code_outside_the_pattern_has_no_route(admin, make_coupon, code):
    make_coupon(code="summer")
    assert reply(by_code(admin, code)) == refusal("shop_api_no_route")


def test_code_that_looks_like_a_route_is_found_by_code(admin, make_coupon):
    for code in ("count", "bulk", "code", "1"):
        coupon = make_coupon(code=code)
        assert reply(by_code(admin, code)) == (200, {"coupon": coupon})


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ("code", ["code"]),
        ("id,amount", ["id", "amount"]),
        (" amount , id ", ["id", "amount"]),
        ("unknown", []),
        ("code,unknown", ["code"]),
        ("", FIELDS),
    ],
)
def test_read_selects_fields(admin, make_coupon, fields, names):
    coupon = make_coupon(code="summer")
    selected = (200, {"coupon": {name: coupon[name] for name in names}})
    assert reply(admin.get(f"/coupons/{coupon['id']}", {"fields": fields})) == selected
    assert reply(admin.get("/coupons/code/summer", {"fields": fields})) == selected


# --- create ---


def test_create_with_a_code_only(admin):
    before = datetime.now(UTC).replace(microsecond=0)
    response = admin.post("/coupons", {"coupon": {"code": "summer"}})
    coupon = response.get_json()["coupon"]
    assert reply(response) == (
        201,
        {
            "coupon": DEFAULTS
            | {
                "id": coupon["id"],
                "code": "summer",
                "created_at": coupon["created_at"],
                "updated_at": coupon["created_at"],
            }
        },
    )
    assert coupon["id"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", coupon["created_at"])
    assert before <= datetime.fromisoformat(coupon["created_at"]) <= datetime.now(UTC)
    assert read(admin, coupon["id"]) == coupon


def test_create_with_every_field(admin):
    response = admin.post("/coupons", {"coupon": INPUT})
    coupon = response.get_json()["coupon"]
    made = {name: coupon[name] for name in ("id", "created_at", "updated_at")}
    assert reply(response) == (201, {"coupon": OUTPUT | made})
    assert read(admin, coupon["id"]) == coupon


def test_create_ignores_what_is_not_accepted(admin):
    given = {
        "code": "summer",
        "id": 4711,
        "created_at": "2001-01-01T00:00:00Z",
        "updated_at": ["not even a date"],
        "status": "trash",
        "author_id": 1,
        "unknown": {"a": [1]},
    }
    response = admin.post("/coupons", {"coupon": given, "other": 1})
    coupon = response.get_json()["coupon"]
    made = {name: coupon[name] for name in ("id", "created_at", "updated_at")}
    assert reply(response) == (201, {"coupon": DEFAULTS | made | {"code": "summer"}})
    assert coupon["id"] != 4711
    assert not coupon["created_at"].startswith("2001")


def test_create_with_null_everywhere_takes_the_defaults(admin):
    response = admin.post("/coupons", {"coupon": dict.fromkeys(DEFAULTS) | {"code": "summer"}})
    coupon = response.get_json()["coupon"]
    made = {name: coupon[name] for name in ("id", "created_at", "updated_at", "code")}
    assert reply(response) == (201, {"coupon": DEFAULTS | made})


@pytest.mark.parametrize("kind", ["fixed_cart", "percent", "fixed_product", "percent_product"])
def test_create_with_a_known_type(make_coupon, kind):
    assert make_coupon(type=kind)["type"] == kind


@pytest.mark.parametrize("kind", ["", "unknown", "fixed cart", 5])
def test_type_unknown(admin, make_coupon, kind):
    coupon = make_coupon()
    assert reply(admin.post("/coupons", {"coupon": {"code": "x", "type": kind}})) == INVALID_TYPE
    assert reply(edit(admin, coupon["id"], type=kind)) == INVALID_TYPE


@pytest.mark.parametrize("code", ["summer", "SUMMER", " summer ", "<b>Summer</b>", "su\u0007mmer"])
def test_create_with_a_taken_code(admin, make_coupon, code):
    make_coupon(code="summer")
    assert reply(admin.post("/coupons", {"coupon": {"code": code}})) == TAKEN
    assert count(admin) == {"count": 1}


@pytest.mark.parametrize("force", ["false", "true"])
def test_create_with_the_code_of_a_deleted_coupon(admin, make_coupon, force):
    first = make_coupon(code="summer")
    admin.delete(f"/coupons/{first['id']}", {"force": force})
    second = make_coupon(code="summer")
    assert second["id"] != first["id"]
    assert reply(by_code(admin, "summer")) == (200, {"coupon": second})


def test_trash_holds_several_coupons_with_one_code(admin, make_coupon):
    for _ in range(3):
        assert reply(admin.delete(f"/coupons/{make_coupon(code='summer')['id']}")) == TRASHED
    assert reply(by_code(admin, "summer")) == NO_CODE


UNSTORABLE = ["", "  ", "\t\n", "<b></b>", "<!-- x -->", "\u0007", "&nbsp;", "İ" * 251]


@pytest.mark.one_database
@pytest.mark.parametrize("code", UNSTORABLE, ids=lambda code: repr(code[:20]))
def test_create_with_a_code_that_cannot_be_stored(admin, code):
    response = admin.post("/coupons", {"coupon": {"code": code}})
    assert codes(response) == (400, "shop_api_cannot_create_coupon")
    assert count(admin) == {"count": 0}


# Each row violates its own rule and all later rules. The response reports the first of them.
CREATE_ORDER = {
    "wrapper key": ("customer", {"amount": "x"}, (400, "shop_api_missing_coupon_data")),
    "types": (
        "customer",
        {"coupon": {"amount": "x", "type": "x"}},
        (400, "shop_api_invalid_param"),
    ),
    "capability": (
        "customer",
        {"coupon": {"type": "x"}},
        (401, "shop_api_user_cannot_create_coupon"),
    ),
    "code required": (
        "administrator",
        {"coupon": {"type": "x"}},
        (400, "shop_api_missing_coupon_code"),
    ),
    "code null": (
        "administrator",
        {"coupon": {"code": None, "type": "x"}},
        (400, "shop_api_missing_coupon_code"),
    ),
    "code unique": (
        "administrator",
        {"coupon": {"code": "Taken", "type": "x"}},
        (400, "shop_api_coupon_code_already_exists"),
    ),
    "type known": (
        "administrator",
        {"coupon": {"code": " ", "type": "x"}},
        (400, "shop_api_invalid_coupon_type"),
    ),
    "storable": (
        "administrator",
        {"coupon": {"code": " "}},
        (400, "shop_api_cannot_create_coupon"),
    ),
}


@pytest.mark.parametrize(
    ("role", "body", "expected"), CREATE_ORDER.values(), ids=list(CREATE_ORDER)
)
def test_create_checks_in_the_specified_order(client_for, admin, make_coupon, role, body, expected):
    make_coupon(code="taken")
    assert codes(client_for(role).post("/coupons", body)) == expected
    assert count(admin) == {"count": 1}


# --- edit ---


def test_update_every_field(admin, make_coupon):
    coupon = make_coupon()
    response = edit(admin, coupon["id"], **INPUT)
    updated_at = response.get_json()["coupon"]["updated_at"]
    assert reply(response) == (200, {"coupon": coupon | OUTPUT | {"updated_at": updated_at}})
    assert read(admin, coupon["id"]) == response.get_json()["coupon"]


@pytest.mark.parametrize(("field", "given", "output"), [(k, *v) for k, v in EVERY_FIELD.items()])
def test_update_of_one_field_leaves_the_others(admin, make_coupon, field, given, output):
    coupon = make_coupon(**INPUT | {field: DEFAULTS.get(field, "before")})
    response = edit(admin, coupon["id"], **{field: given})
    updated_at = response.get_json()["coupon"]["updated_at"]
    expected = coupon | {field: output, "updated_at": updated_at}
    assert reply(response) == (200, {"coupon": expected})
    assert read(admin, coupon["id"]) == expected


def test_update_moves_updated_at_only(admin, make_coupon, store):
    coupon = make_coupon()
    store(coupon["id"], created_at=LONG_AGO, updated_at=LONG_AGO)
    before = datetime.now(UTC).replace(microsecond=0)
    edited = edit(admin, coupon["id"], amount=1).get_json()["coupon"]
    assert edited["created_at"] == "2020-02-29T12:30:15Z"
    assert before <= datetime.fromisoformat(edited["updated_at"]) <= datetime.now(UTC)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        dict.fromkeys(INPUT),
        {"id": 99, "created_at": "2001-01-01", "updated_at": "2001-01-01"},
        {"unknown": 1},
    ],
    ids=["nothing", "null", "not accepted", "unknown"],
)
def test_update_without_a_supplied_field_changes_nothing(admin, make_coupon, store, fields):
    coupon = make_coupon(**INPUT)
    store(coupon["id"], created_at=LONG_AGO, updated_at=LONG_AGO)
    before = read(admin, coupon["id"])
    assert reply(edit(admin, coupon["id"], **fields)) == (200, {"coupon": before})
    assert read(admin, coupon["id"]) == before


@pytest.mark.parametrize("code", ["summer", "SUMMER", "winter"])
def test_update_of_the_code(admin, make_coupon, code):
    coupon = make_coupon(code="summer")
    edited = edit(admin, coupon["id"], code=code).get_json()["coupon"]
    assert edited["code"] == code.lower()
    assert reply(by_code(admin, code)) == (200, {"coupon": edited})


def test_update_of_the_code_frees_the_old_one(admin, make_coupon):
    coupon = make_coupon(code="summer")
    edit(admin, coupon["id"], code="winter")
    assert reply(by_code(admin, "summer")) == NO_CODE
    assert make_coupon(code="summer")["id"] != coupon["id"]


def test_update_to_a_taken_code(admin, make_coupon, store):
    make_coupon(code="summer")
    coupon = make_coupon(code="winter")
    store(coupon["id"], updated_at=LONG_AGO)
    before = read(admin, coupon["id"])
    assert reply(edit(admin, coupon["id"], code=" Summer", amount=5)) == TAKEN
    assert read(admin, coupon["id"]) == before


def test_update_to_the_code_of_a_trashed_coupon(admin, make_coupon):
    admin.delete(f"/coupons/{make_coupon(code='summer')['id']}")
    coupon = make_coupon(code="winter")
    assert edit(admin, coupon["id"], code="summer").get_json()["coupon"]["code"] == "summer"


@pytest.mark.one_database
@pytest.mark.parametrize("code", UNSTORABLE, ids=lambda code: repr(code[:20]))
def test_update_to_a_code_that_cannot_be_stored(admin, make_coupon, code):
    coupon = make_coupon()
    response = edit(admin, coupon["id"], code=code, amount=5)
    assert codes(response) == (400, "shop_api_cannot_update_coupon")
    assert read(admin, coupon["id"]) == coupon


def test_update_of_code_or_description_is_found_by_a_search(admin, make_coupon):
    coupon = make_coupon(code="summer", description="sun")
    edited = edit(admin, coupon["id"], description="Snow").get_json()["coupon"]
    assert admin.get("/coupons", {"filter[q]": "sNOW"}).get_json() == {"coupons": [edited]}
    assert admin.get("/coupons", {"filter[q]": "sun"}).get_json() == {"coupons": []}
    assert admin.get("/coupons", {"filter[q]": "summ"}).get_json() == {"coupons": [edited]}


# Each row violates its own rule and all later rules. The response reports the first of them.
EDIT_ORDER = {
    "wrapper key": ("customer", 999, {"amount": "x"}, (400, "shop_api_missing_coupon_data")),
    "types": ("customer", 999, {"coupon": {"amount": "x"}}, (400, "shop_api_invalid_param")),
    "id": (
        "customer",
        999,
        {"coupon": {"code": "taken", "type": "x"}},
        (404, "shop_api_invalid_coupon_id"),
    ),
    "capability": (
        "customer",
        None,
        {"coupon": {"code": "taken", "type": "x"}},
        (401, "shop_api_user_cannot_edit_coupon"),
    ),
    "code unique": (
        "administrator",
        None,
        {"coupon": {"code": "Taken", "type": "x"}},
        (400, "shop_api_coupon_code_already_exists"),
    ),
    "type known": (
        "administrator",
        None,
        {"coupon": {"code": " ", "type": "x"}},
        (400, "shop_api_invalid_coupon_type"),
    ),
    "storable": (
        "administrator",
        None,
        {"coupon": {"code": " "}},
        (400, "shop_api_cannot_update_coupon"),
    ),
}


@pytest.mark.parametrize(
    ("role", "coupon_id", "body", "expected"), EDIT_ORDER.values(), ids=list(EDIT_ORDER)
)
def test_update_checks_in_the_specified_order(
    client_for, admin, make_coupon, role, coupon_id, body, expected
):
    make_coupon(code="taken")
    coupon = make_coupon()
    assert codes(client_for(role).put(f"/coupons/{coupon_id or coupon['id']}", body)) == expected
    assert read(admin, coupon["id"]) == coupon


def test_rejected_update_changes_nothing(admin, make_coupon):
    coupon = make_coupon()
    response = edit(admin, coupon["id"], description="new", code="new", amount="x", usage_limit=[])
    assert sorted(refused_params(response)) == ["coupon.amount", "coupon.usage_limit"]
    assert read(admin, coupon["id"]) == coupon


# --- delete ---


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, TRASHED),
        ({"force": "true"}, REMOVED),
        ({"force": "false"}, TRASHED),
        ({"force": ""}, TRASHED),
        ({"force": "1"}, TRASHED),
        ({"force": "yes"}, TRASHED),
        ({"force": "True"}, TRASHED),
        ({"force": "TRUE"}, TRASHED),
        ({"force": " true"}, TRASHED),
        ({"force": "truer"}, TRASHED),
        ({"Force": "true"}, TRASHED),
    ],
    ids=str,
)
def test_delete(admin, make_coupon, query, expected):
    other = make_coupon()
    coupon = make_coupon(code="summer")
    path = f"/coupons/{coupon['id']}"
    assert reply(admin.delete(path, query)) == expected
    assert reply(admin.get(path)) == GONE
    assert reply(by_code(admin, "summer")) == NO_CODE
    assert reply(edit(admin, coupon["id"], amount=1)) == GONE
    assert reply(admin.delete(path)) == GONE
    assert reply(admin.delete(path, {"force": "true"})) == GONE
    assert reply(admin.get("/coupons")) == (200, {"coupons": [other]})
    assert count(admin) == {"count": 1}


def test_delete_does_not_read_force_from_the_body(admin, make_coupon):
    coupon = make_coupon()
    assert reply(admin.delete(f"/coupons/{coupon['id']}", json={"force": "true"})) == TRASHED


def test_id_of_a_deleted_coupon_is_not_reused(admin, make_coupon):
    removed = make_coupon()
    admin.delete(f"/coupons/{removed['id']}", {"force": "true"})
    assert make_coupon()["id"] > removed["id"]


# --- who may ---

OPERATIONS = {
    "read": ("GET", "/coupons/{id}", None, "shop_api_user_cannot_read_coupon"),
    "read by code": ("GET", "/coupons/code/{code}", None, "shop_api_user_cannot_read_coupon"),
    "count": ("GET", "/coupons/count", None, "shop_api_user_cannot_read_coupons_count"),
    "create": (
        "POST",
        "/coupons",
        {"coupon": {"code": "new"}},
        "shop_api_user_cannot_create_coupon",
    ),
    "edit": (
        "PUT",
        "/coupons/{id}",
        {"coupon": {"amount": 1}},
        "shop_api_user_cannot_edit_coupon",
    ),
    "delete": ("DELETE", "/coupons/{id}", None, "shop_api_user_cannot_delete_coupon"),
}


def operate(client, coupon, method, path, body):
    return client.request(method, path.format_map(coupon), json=body)


@pytest.mark.parametrize(
    ("method", "path", "body", "code"), OPERATIONS.values(), ids=list(OPERATIONS)
)
@pytest.mark.parametrize("role", ["administrator", "shop_manager"])
def test_role_with_coupon_capabilities(client_for, make_coupon, role, method, path, body, code):
    client = client_for(role, login="someone else")
    assert operate(client, make_coupon(), method, path, body).status_code in {200, 201}


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("method", "path", "body", "code"), OPERATIONS.values(), ids=list(OPERATIONS)
)
@pytest.mark.parametrize("role", ["customer", "subscriber", "no such role"])
def test_role_without_coupon_capabilities(
    client_for, admin, make_coupon, role, method, path, body, code
):
    coupon = make_coupon()
    assert reply(operate(client_for(role), coupon, method, path, body)) == refusal(code)
    assert reply(admin.get("/coupons")) == (200, {"coupons": [coupon]})


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/coupons/999", "shop_api_invalid_coupon_id"),
        ("GET", "/coupons/code/unknown", "shop_api_invalid_coupon_code"),
        ("PUT", "/coupons/999", "shop_api_invalid_coupon_id"),
        ("DELETE", "/coupons/999", "shop_api_invalid_coupon_id"),
    ],
)
def test_unknown_coupon_is_missing_before_a_capability_is(client_for, method, path, code):
    response = client_for("customer").request(method, path, json={"coupon": {}})
    assert reply(response) == refusal(code)


@pytest.fixture
def author(monkeypatch, client_for):
    """A client that can write its own coupons only."""
    own = {
        Capability.PUBLISH_SHOP_COUPONS,
        Capability.READ_PRIVATE_SHOP_COUPONS,
        Capability.EDIT_SHOP_COUPONS,
        Capability.DELETE_SHOP_COUPONS,
    }
    monkeypatch.setitem(ROLES, "author", frozenset(own))
    return client_for("author")


def test_own_coupon_needs_no_capability_for_others(author, make_coupon):
    coupon = make_coupon(author)
    assert edit(author, coupon["id"], amount=1).status_code == 200
    assert reply(author.delete(f"/coupons/{coupon['id']}")) == TRASHED


@pytest.mark.parametrize("force", ["false", "true"])
def test_coupon_of_another_user_needs_a_capability_for_others(author, make_coupon, force):
    coupon = make_coupon()
    path = f"/coupons/{coupon['id']}"
    assert reply(author.get(path)) == (200, {"coupon": coupon})
    assert reply(edit(author, coupon["id"], amount=1)) == refusal(
        "shop_api_user_cannot_edit_coupon"
    )
    assert reply(author.delete(path, {"force": force})) == refusal(
        "shop_api_user_cannot_delete_coupon"
    )
    assert reply(author.get(path)) == (200, {"coupon": coupon})


def test_update_by_another_user_keeps_the_author(author, admin, make_coupon):
    coupon = make_coupon(author)
    assert edit(admin, coupon["id"], amount=1).status_code == 200
    assert edit(author, coupon["id"], amount=2).status_code == 200


def test_two_keys_of_one_user_own_the_same_coupons(author, client_for, make_coupon):
    coupon = make_coupon(author)
    assert edit(client_for("author"), coupon["id"], amount=1).status_code == 200


def test_coupon_of_a_deleted_user_is_not_the_callers(app, author, client_for, admin, make_coupon):
    coupon = make_coupon(author)

    with app.app_context():
        run_in_transaction(lambda session: session.delete(session.get(User, author.key.user_id)))
    successor = client_for("author")
    assert reply(successor.get(f"/coupons/{coupon['id']}")) == (200, {"coupon": coupon})
    assert reply(edit(successor, coupon["id"], amount=1)) == refusal(
        "shop_api_user_cannot_edit_coupon"
    )
    assert edit(admin, coupon["id"], amount=1).status_code == 200
