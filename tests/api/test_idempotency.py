"""Repeated requests with an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header)."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, text, update

from app.api.blueprint import Blueprint
from app.api.idempotency import idempotent
from app.db.session import run_in_transaction
from app.models import IdempotencyRecord
from app.schemas.base import CountResponse
from app.services.api_keys.writes import revoke_key
from tests.api.idempotency_requests import CREATES, REQUESTS, REUSED, is_replayed, send, shop
from tests.api_client import Client, codes, failure, refusal, reply, without_key

DAY = timedelta(hours=24)


@pytest.fixture
def age(app):
    """Return a function: let the stored records be older."""

    def change(by):
        older = update(IdempotencyRecord).values(
            created_at=datetime.now(UTC).replace(microsecond=0) - by
        )
        with app.app_context():
            run_in_transaction(lambda session: session.execute(older))

    return change


# --- the same again ---


@pytest.mark.sample(2)
@pytest.mark.parametrize(("method", "path", "body", "_"), REQUESTS)
def test_request_again_gets_the_first_answer_and_does_nothing(admin, method, path, body, _):
    first = send(admin, path, body, method=method)
    assert first.status_code in {200, 201}
    assert is_replayed(first) is None
    before = shop(admin)
    for _ in range(2):
        again = send(admin, path, body, method=method)
        assert (again.status_code, again.data) == (first.status_code, first.data)
        assert again.content_type == first.content_type
        assert is_replayed(again) == "true"
    assert shop(admin) == before


def test_request_again_gets_the_first_answer_also_when_the_record_has_changed(admin):
    first = send(admin)
    path = f"/coupons/{first.get_json()['coupon']['id']}"
    admin.put(path, {"coupon": {"amount": 7}})
    assert reply(send(admin)) == reply(first)
    admin.delete(path)
    assert reply(send(admin)) == reply(first)
    assert shop(admin)["coupons"] == []


def test_request_again_with_a_slash_is_the_same(admin):
    first = send(admin)
    again = admin.post("/coupons/", CREATES["/coupons"][0], headers={"Idempotency-Key": "k-1"})
    assert (reply(again), is_replayed(again)) == (reply(first), "true")


@pytest.mark.parametrize(("method", "path", "body", "other"), REQUESTS)
def test_another_body_is_rejected(admin, method, path, body, other):
    send(admin, path, body, method=method)
    before = shop(admin)
    assert reply(send(admin, path, other, method=method)) == REUSED
    assert shop(admin) == before
    assert is_replayed(send(admin, path, body, method=method)) == "true"


def test_body_is_the_same_byte_for_byte(admin):
    headers = {"Idempotency-Key": "k-1"}
    assert (
        admin.post("/coupons", data=b'{"coupon":{"code":"a"}}', headers=headers).status_code == 201
    )
    spaced = admin.post("/coupons", data=b'{"coupon": {"code":"a"}}', headers=headers)
    assert reply(spaced) == REUSED


# --- whose key it is ---


def test_key_belongs_to_an_api_key(admin, client_for):
    first = send(admin)
    stranger, sibling = client_for(login="stranger"), client_for()
    assert sibling.key.user_id == admin.key.user_id
    for other in (stranger, sibling):
        # This is another request, and the code is in use.
        response = send(other)
        assert reply(response) == refusal("shop_api_coupon_code_already_exists")
        assert send(other, body={"coupon": {"code": f"of {other.key.key_id}"}}).status_code == 201
    assert reply(send(admin)) == reply(first)


def test_key_belongs_to_a_method_and_a_path(admin):
    responses = [send(admin, path, body, method=method) for method, path, body, _ in REQUESTS]
    assert [is_replayed(response) for response in responses] == [None] * len(REQUESTS)


def test_kept_answer_is_for_who_may_still_send_the_request(app, client_for):
    client = client_for("shop_manager")
    send(client)
    with app.app_context():
        revoke_key(client.key.key_id)
    assert codes(send(client)) == (401, "shop_api_authentication_error")


@pytest.mark.sample(8)
@pytest.mark.parametrize("key", ["", " ", "a b", "é", "k\x7f", "k\tk", "x" * 256], ids=ascii)
@pytest.mark.parametrize("path", CREATES)
def test_key_that_is_none_is_rejected(admin, path, key):
    response = send(admin, path, key=key.encode().decode("latin-1"))
    reason = "must be 1 to 255 visible ASCII characters."
    assert reply(response) == refusal("shop_api_invalid_param", "Idempotency-Key", reason=reason)
    assert shop(admin)["coupons"] == []


@pytest.mark.parametrize(
    "key", ["k", "x" * 255, '"8e03978e-40d5-43e8-bc93-6894a57f9324"', "a,b;c=~!"]
)
def test_key_of_any_visible_characters(admin, key):
    assert send(admin, key=key).status_code == 201
    assert is_replayed(send(admin, key=key)) == "true"


# --- rejected requests ---


@pytest.mark.parametrize(
    ("role", "body"),
    [
        ("administrator", {}),
        ("administrator", {"coupon": {}}),
        ("administrator", {"coupon": {"code": "a", "amount": "ten"}}),
        ("administrator", {"coupon": {"code": "taken"}}),
        ("administrator", {"coupon": {"code": "a", "type": "no such type"}}),
        ("customer", {"coupon": {"code": "a"}}),
    ],
)
def test_rejection_is_not_kept(client_for, make_coupon, kept, role, body):
    make_coupon(code="taken")
    client = client_for(role)
    plain = reply(client.post("/coupons", body))
    for _ in range(2):
        response = send(client, body=body)
        assert (reply(response), is_replayed(response)) == (plain, None)
    assert kept() == []


def test_rejected_request_may_be_corrected_under_its_key(admin, make_coupon):
    other = make_coupon(code="summer")
    assert reply(send(admin)) == refusal("shop_api_coupon_code_already_exists")
    admin.delete(f"/coupons/{other['id']}")
    assert send(admin).status_code == 201
    assert reply(send(admin, body={"coupon": {"code": "winter"}})) == REUSED


def test_bulk_is_kept_with_what_it_rejected(admin, make_coupon):
    taken = make_coupon(code="summer")
    body = {"coupons": [{"code": "summer"}, {"code": "autumn"}]}
    first = send(admin, "/coupons/bulk", body)
    refused, _ = first.get_json()["coupons"]
    assert refused == failure("shop_api_coupon_code_already_exists")
    admin.delete(f"/coupons/{taken['id']}")
    assert reply(send(admin, "/coupons/bulk", body)) == reply(first)


def test_answer_that_is_too_large_to_keep_is_rejected_as_a_whole(admin, make_coupon, monkeypatch):
    limit, number = 2**19, 5
    monkeypatch.setattr("app.api.idempotency.MAX_BYTES", limit)
    coupons = [make_coupon(description="\u20ac" * 65_536) for _ in range(number)]
    body = {"coupons": [{"id": coupon["id"], "amount": 9} for coupon in coupons]}
    response = send(admin, "/coupons/bulk", body)
    assert reply(response) == refusal("shop_api_response_too_large", limit=limit)
    query = {"fields": "amount", "filter[order]": "asc"}
    assert admin.get("/coupons", query).get_json()["coupons"] == [{"amount": "0.00"}] * number
    assert admin.post("/coupons/bulk", body).status_code == 200


# --- stored responses and their expiry ---


def test_kept_answer_holds_no_key_and_no_body(admin, kept):
    send(admin, "/customers", key="an idempotency key".replace(" ", "-"))
    (row,) = kept()
    text = " ".join(map(str, row))
    assert "correct horse" not in text
    assert "an-idempotency-key" not in text
    assert admin.key.consumer_secret not in text


@pytest.mark.parametrize(
    ("by", "status"),
    [(timedelta(), 201), (DAY - timedelta(minutes=1), 201), (DAY + timedelta(minutes=1), 400)],
    ids=["at once", "within a day", "after a day"],
)
def test_answer_is_kept_for_a_day(admin, age, by, status):
    first = send(admin)
    age(by)
    again = send(admin)
    assert again.status_code == status
    if status == 201:
        assert reply(again) == reply(first)


def test_key_can_be_used_anew_after_a_day(admin, age, kept):
    send(admin)
    age(DAY)
    second = send(admin, body={"coupon": {"code": "winter"}})
    assert (second.status_code, is_replayed(second)) == (201, None)
    assert reply(send(admin, body={"coupon": {"code": "winter"}})) == reply(second)
    assert len(kept()) == 1


@pytest.mark.pooler
def test_old_answers_go_as_new_ones_come(app, admin, kept):
    old = datetime.now(UTC).replace(microsecond=0) - 2 * DAY
    rows = [
        {
            "request_hash": f"{n}",
            "body_hash": "",
            "status": 200,
            "response_body": b"",
            "created_at": old,
        }
        for n in range(50)
    ]
    with app.app_context():
        run_in_transaction(lambda session: session.execute(insert(IdempotencyRecord), rows))
    left = []
    for number in range(4):
        send(admin, key=f"k-{number}", body={"coupon": {"code": f"c{number}"}})
        left.append(sum(row.created_at == old for row in kept()))
    assert left == [30, 10, 0, 0]
    assert len(kept()) == 4


# --- the legacy API ---


@pytest.mark.parametrize("path", ["/coupons", "/coupons/bulk"])
def test_legacy_request_again_gets_the_first_answer(admin, path):
    body, other = CREATES[path]
    first = send(admin, f"/wc-api/v3{path}", body)
    again = send(admin, f"/wc-api/v3{path}", body)
    assert (first.status_code, is_replayed(first)) == (201, None)
    assert (reply(again), is_replayed(again)) == (reply(first), "true")
    reused = send(admin, f"/wc-api/v3{path}", other)
    assert codes(reused) == (422, "woocommerce_api_idempotency_key_reused")


# --- views of plugins ---


def test_view_of_a_plugin(make_app, admin):
    app = make_app()
    blp = Blueprint("notes", __name__, url_prefix="/notes")

    @blp.route("", methods=["POST"])
    @idempotent
    @blp.response(201, CountResponse)
    def write_note():
        """Use every coupon twice and say how often they were used."""

        def work(session):
            session.execute(text("UPDATE coupons SET usage_count = usage_count + 1"))
            return session.scalar(text("SELECT max(usage_count) FROM coupons"))

        run_in_transaction(work)
        return {"count": run_in_transaction(work)}

    app.extensions["flask-smorest"]["apis"][""]["ext_obj"].register_blueprint(blp)
    client = Client(app, admin.key)
    send(client)
    first = send(client, "/notes", {}, "note")
    assert reply(first) == (201, {"count": 2})
    again = send(client, "/notes", {}, "note")
    assert (reply(again), is_replayed(again)) == (reply(first), "true")
    assert reply(client.post("/notes")) == (201, {"count": 4})


# --- who sends no key ---


@pytest.mark.parametrize(("path", "count"), [("/coupons", 3), ("/customers", 6)])
def test_request_without_a_key_costs_no_statement(admin, statements, kept, path, count):
    statements.clear()
    assert admin.post(path, CREATES[path][0]).status_code == 201
    assert len(without_key(statements)) == count, statements
    assert kept() == []


@pytest.mark.pooler
def test_key_costs_three_statements(admin, statements):
    send(admin)
    assert len(without_key(statements)) == 3 + 3
    statements.clear()
    assert is_replayed(send(admin)) == "true"
    assert len(without_key(statements)) == 2  # the kept response, and pending erasures


@pytest.mark.parametrize(("method", "path"), [("GET", "/coupons"), ("DELETE", "/coupons/1")])
def test_key_means_nothing_elsewhere(admin, kept, method, path):
    plain = reply(admin.request(method, path))
    for key in ("k-1", ""):
        assert reply(admin.request(method, path, headers={"Idempotency-Key": key})) == plain
    assert kept() == []
