"""Requests while another request deletes their user or their customer (redemptions 6)."""

import pytest
from sqlalchemy import delete

from app.db.session import db
from app.models import User
from app.services.api_keys import writes as api_keys
from app.services.coupons import terms
from tests.api_client import Client, codes
from tests.api_keys.calls import REJECTED

WEBHOOK = {"topics": ["*"], "delivery_url": "https://example.com/"}


@pytest.fixture
def delete_user_after(app, monkeypatch):
    """Return a function: delete a user whenever a function of a module returns."""

    def arrange(module, name, user_id):
        function = getattr(module, name)

        def call(*args, **kwargs):
            result = function(*args, **kwargs)
            with db.engine.begin() as connection:
                connection.execute(delete(User).where(User.id == user_id))
            return result

        monkeypatch.setattr(module, name, call)

    return arrange


@pytest.mark.sample(1)
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "1"}], ids=["once", "idempotent"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/coupons", {"coupon": {"code": "x"}}, marks=pytest.mark.both_databases),
        ("/coupons/bulk", {"coupons": [{"code": "x"}, {"code": "y"}]}),
        ("/coupons/generate", {"generate": {"count": 2, "prefix": "SPRING-"}}),
        ("/webhooks", {"webhook": WEBHOOK}),
        ("/keys", {"key": {}}),
    ],
)
def test_user_who_was_deleted_on_another_machine(
    admin, client_for, make_app, tmp_path, path, body, headers
):
    """Another machine has another instance folder, and the key is in its cache for a second."""
    user = client_for("administrator", login="bob")
    elsewhere = Client(make_app(INSTANCE_PATH=str(tmp_path)), user.key)
    assert elsewhere.get("/coupons").status_code == 200
    assert admin.delete(f"/customers/{user.key.user_id}").status_code == 200
    assert codes(elsewhere.post(path, body, headers=headers)) == REJECTED
    assert codes(elsewhere.get("/coupons")) == REJECTED
    assert admin.get("/coupons/count").get_json() == {"count": 0}


def test_user_who_was_deleted_on_another_machine_activates_a_webhook(
    admin, client_for, make_app, tmp_path
):
    """An active webhook needs a user, and the user who created it was deleted before."""
    creator, user = (client_for("shop_manager", login=login) for login in ("ann", "bob"))
    created = creator.post("/webhooks", {"webhook": WEBHOOK}).get_json()["webhook"]
    assert admin.delete(f"/customers/{creator.key.user_id}").status_code == 200
    elsewhere = Client(make_app(INSTANCE_PATH=str(tmp_path)), user.key)
    path = f"/webhooks/{created['id']}"
    assert elsewhere.get(path).status_code == 200
    assert admin.delete(f"/customers/{user.key.user_id}").status_code == 200
    assert codes(elsewhere.put(path, {"webhook": {"status": "active"}})) == REJECTED
    assert admin.get(path).get_json()["webhook"]["status"] == "disabled"


@pytest.mark.both_databases
def test_customer_who_is_deleted_during_a_reservation(
    admin, make_coupon, make_customer, delete_user_after
):
    coupon, customer_id = make_coupon(code="a", usage_limit=1), make_customer()["id"]
    delete_user_after(terms, "find_customer", customer_id)
    use = {"code": "a", "reference": "cart-1"}
    response = admin.post("/redemptions", {"redemption": use | {"customer_id": customer_id}})
    assert codes(response) == (400, "shop_api_invalid_customer_id")
    assert admin.post("/redemptions", {"redemption": use}).status_code == 201
    assert admin.get(f"/coupons/{coupon['id']}").get_json()["coupon"]["usage_count"] == 0


# On SQLite, one transaction writes at a time.
@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_user_who_is_deleted_while_a_key_is_created(admin, make_customer, delete_user_after):
    user_id = make_customer()["id"]
    delete_user_after(api_keys, "user_for", user_id)
    response = admin.post("/keys", {"key": {"user_id": user_id}})
    assert codes(response) == (400, "shop_api_invalid_param")
    assert response.get_json()["errors"][0]["param"] == "key.user_id"
